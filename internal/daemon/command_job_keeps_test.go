package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/redisledger"
)

// forgetful is an output store that answers a few times that it cannot be reached.
type forgetful struct {
	pieces
	fails int
}

func (f *forgetful) AppendOutput(ctx context.Context, o redisledger.Output) error {
	f.mu.Lock()
	fails := f.fails > 0
	f.fails--
	f.mu.Unlock()
	if fails {
		return errors.New("connection refused")
	}
	return f.pieces.AppendOutput(ctx, o)
}

// What Redis does not take, as in a failover, is sent again.
func TestOutputThatWasNotTakenIsSentAgain(t *testing.T) {
	kept := &forgetful{fails: 2}
	taken := func() bool {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return kept.fails < 0
	}
	p := newPrintout(nil, func(ctx context.Context, offset int64, text []byte) error {
		return kept.AppendOutput(ctx, redisledger.Output{Offset: offset, Text: text})
	}, zap.NewNop())
	_, _ = p.Write([]byte("first\n"))
	await(t, "a piece to be taken", taken)
	_, _ = p.Write([]byte("last\n"))
	p.close(time.Minute)
	if got := kept.text(t); got != "first\nlast\n" {
		t.Errorf("kept %q", got)
	}
}

// A command can read whatever the daemon's user can.
func TestWhatTheDaemonKnowsIsTakenOutOfTheOutput(t *testing.T) {
	j, o, kept := trial("echo the password is hunter2-hunter2")
	o.Known = func() []string { return []string{"hunter2-hunter2"} }
	result, err := newCommandJob(j, o).run(t.Context(), oneRun)
	if err != nil {
		t.Fatal(err)
	}
	if all := result.Output + kept.text(t); strings.Contains(all, "hunter2") || strings.Count(all, "the password is ***\n") != 2 {
		t.Errorf("%q", all)
	}
}

// Who writes a command line may write a password into it.
func TestOfACommandOnlyTheProgramIsNamed(t *testing.T) {
	for want, j := range map[string]config.Job{
		"a shell command": {Shell: true, Command: config.Command{"mysql -phunter2 <report.sql"}},
		"mysql":           {Command: config.Command{"/usr/bin/mysql", "-phunter2"}},
	} {
		if got := (task{config: j}).target(); got != want {
			t.Errorf("%q is shown as %q, want %q", j.Command, got, want)
		}
	}
}

func TestACommandThatIsKeptRunningIsWellAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lasts time.Duration
			want  int
		}{{time.Minute, 0}, {31 * time.Minute, 6}} {
			told := 0
			work := steadily(func(context.Context, job.Run) (job.Result, error) {
				time.Sleep(c.lasts)
				return job.Result{}, nil
			}, func(context.Context, job.Run) { told++ })
			_, _ = work(t.Context(), oneRun)
			if told != c.want {
				t.Errorf("a run of %v told %d times that it is well, want %d", c.lasts, told, c.want)
			}
		}
	})
}
