package demo

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The picture must show the findings of the audit and the facts of the recording: which node led, how its term ended, and the naive
// program.
func TestPictureShowsWhatTheRunWas(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	f := &recording{}
	f.leads("node-1", at(-2))
	f.begin(at(0))
	f.fault("node-1", at(3), syscall.SIGKILL)
	f.fault("node-2", at(4), 0) // the node ended by itself
	f.leads("node-2", at(5))
	f.leads("node-2", at(6))
	f.fault("node-2", at(7), syscall.SIGSTOP)
	for i := range 11 {
		r := reading{at: at(i), naive: damage{lost: int64(10 * i), twice: int64(i)}}
		r.written.Counters, r.flushed.Counters = int64(100*i), int64(90*i)
		f.frame(r)
	}
	f.end(at(10))
	half := 1.5
	text := f.picture(Report{
		Written: amount{Counters: 1000}, Flushed: amount{Counters: 1000}, Faults: faults{Killed: 1, Frozen: 1},
		Failover: failovers{Count: 2, P50: &half, Max: &half}, Naive: &NaiveReport{Lost: 100, Duplicated: 10},
	})
	wellFormed(t, text)
	for _, want := range []string{
		"baton: lost 0 · twice 0", ">lost 100 · twice 10<", "1,000 written to Redis", "1,000 in the database",
		"10 s of traffic, 1 leaders killed, 1 frozen", "after 1.5 s (median)", ">10 s<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if crosses, boxes := strings.Count(text, "<path"), strings.Count(text, `width="9"`); crosses != 1 || boxes != 1 {
		t.Errorf("%d leaders died and %d froze, want 1 and 1", crosses, boxes)
	}
	if led := strings.Count(text, `rx="3" fill="`+goodColor); led != 2 {
		t.Errorf("%d times with a leader, want 2", led)
	}
	if strings.Contains(text, "failed") || !strings.Contains(f.picture(Report{Lost: 1}), "This run failed its audit.") {
		t.Error("the picture of a run that lost something does not say so, or another does")
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

func TestRunDrawsItsPicture(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	o.NoNaive, o.Picture = false, filepath.Join(t.TempDir(), "run.svg")
	report := mustBeClean(t, o, log)
	text, err := os.ReadFile(o.Picture)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, string(text))
	for _, want := range []string{group(report.Written.Counters) + " written to Redis", `fill="` + goodColor, "<polyline"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A demo may run for days. Its recording must keep only as many frames as the picture can show, evenly distributed over the time.
func TestFilmKeepsFewFrames(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	f := &recording{}
	f.begin(began)
	const readings = 100_000
	for i := range readings {
		f.frame(reading{at: began.Add(time.Duration(i) * gaugeEvery)})
	}
	f.end(began.Add(readings * gaugeEvery))
	frames := f.shown()
	if len(frames) < mostFrames/2 || len(frames) > mostFrames {
		t.Fatalf("%d frames, want %d to %d", len(frames), mostFrames/2, mostFrames)
	}
	step := frames[1].at.Sub(frames[0].at)
	for i := range frames[1:] {
		if got := frames[i+1].at.Sub(frames[i].at); got != step {
			t.Fatalf("frame %d is %v behind the one before, want %v", i+1, got, step)
		}
	}
	if last := f.ended.Sub(frames[len(frames)-1].at); last > 2*step {
		t.Errorf("the last frame is %v before the end", last)
	}
}

// If the picture cannot be written, the demo must refuse to start, instead of failing after some minutes.
func TestPictureThatCannotBeWrittenIsRefusedFirst(t *testing.T) {
	temp := t.TempDir()
	_, err := Run(t.Context(), Options{TempDir: temp, Picture: filepath.Join(temp, "missing", "demo.svg")})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--picture") {
		t.Errorf("error %v, want one that names --picture", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("the run had begun: %v, %v", left, err)
	}
}
