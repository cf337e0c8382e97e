package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/command"
	"baton/internal/command/held"
	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/testsupport"
)

// pieces is an output store that records its pieces.
type pieces struct {
	mu    sync.Mutex
	list  []Output
	hangs chan struct{} // if set, no piece is stored before it is closed
}

func (p *pieces) AppendOutput(ctx context.Context, o Output) error {
	p.mu.Lock()
	p.list = append(p.list, o)
	p.mu.Unlock()
	if p.hangs != nil {
		<-p.hangs
		return ctx.Err()
	}
	return nil
}

// text returns the whole stored output. It fails the test if a piece is missing.
func (p *pieces) text(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, o := range p.list {
		if o.Offset != int64(b.Len()) {
			t.Errorf("a piece begins at %d, want %d", o.Offset, b.Len())
		}
		b.Write(o.Text)
	}
	return b.String()
}

// oneRun is the run that the tests use.
var oneRun = job.Run{
	ID: "run-1", Job: "report", Trigger: job.TriggerSchedule, Attempt: 2,
	Slot: time.Date(2026, 1, 2, 18, 30, 0, 0, time.UTC),
	Term: job.Term{NodeID: "db1", Owner: "0b2b5cf2-owner", Epoch: 42},
}

var errLeaseLost = errors.New("the lease ran out")

// trial returns a job that runs a shell script, on a node that leads for another hour.
func trial(text string) (config.Job, Options, *pieces) {
	kept := &pieces{}
	return config.Job{
			Name: "report", Command: config.Command{text}, Shell: true,
			Policy: config.Policy{Grace: 300 * time.Millisecond, TimeZone: "Asia/Shanghai"},
		}, Options{
			Wardens: command.NewReserve([]string{"/proc/self/exe", "warden"}), LockKey: "baton {x}", MaxAge: time.Hour,
			// Without GORACE a process with the race detector would run for another second after its end.
			Environ:       []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"},
			UntilHardStop: func() time.Duration { return time.Hour }, Drain: 2 * time.Second, Finish: time.Second, Output: kept, Keep: 256 << 10, Log: zap.NewNop(),
		}, kept
}

func file(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// For each way to fail, the error names the reason in one sentence.
func TestCommandThatFailsSaysHow(t *testing.T) {
	t.Parallel()
	plain := file(t, "plain", "x", 0o600)
	// A script without its interpreter cannot be run, even by root.
	script := file(t, "script", "exit $1\n", 0o700)
	lost := file(t, "lost", "#!/no/such/interpreter\n", 0o700)
	for _, c := range []struct {
		name   string
		change func(*config.Job)
		want   string // part of the error; "" for no error
		code   int    // -1 if it did not end by itself
	}{
		{"it does well", func(j *config.Job) { j.Command[0] = "true" }, "", 0},
		{"its exit code", func(j *config.Job) { j.Command[0] = "exit 3" }, "exit code 3", 3},
		{"a signal", func(j *config.Job) { j.Command[0] = "kill -9 $$" }, "ended by signal 9 (killed)", -1},
		{"no such program", func(j *config.Job) { j.Shell, j.Command = false, []string{"/opt/nosuch", "-x"} }, "command not found: /opt/nosuch: is it installed on this host (db1)?", -1},
		{"no such name in the path", func(j *config.Job) { j.Shell, j.Command = false, []string{"nosuch"} }, "command not found: nosuch: is it", -1},
		{"a path of its own", func(j *config.Job) {
			j.Shell, j.Command, j.Env = false, []string{"script", "7"}, map[string]string{"PATH": filepath.Dir(script)}
		}, "exit code 7", 7},
		{"not executable", func(j *config.Job) { j.Shell, j.Command = false, []string{plain} }, "command cannot be run: " + plain + ": permission denied", -1},
		{"a folder", func(j *config.Job) { j.Shell, j.Command = false, []string{"/tmp"} }, "command cannot be run: /tmp: ", -1},
		{"a script that names no shell", func(j *config.Job) { j.Shell, j.Command = false, []string{script, "5"} }, "exit code 5", 5},
		{"a script whose shell is missing", func(j *config.Job) { j.Shell, j.Command = false, []string{lost} }, "command cannot be run: " + lost + ": its interpreter /no/such/interpreter does not exist", -1},
		{"no working directory", func(j *config.Job) { j.WorkingDir = "/no/such" }, "working directory /no/such is gone: no such file or directory", -1},
		{"no directory", func(j *config.Job) { j.WorkingDir = plain }, "working directory " + plain + " is not a directory", -1},
		{"relative to the working directory", func(j *config.Job) {
			j.Shell, j.Command, j.WorkingDir = false, []string{"./script", "6"}, filepath.Dir(script)
		}, "exit code 6", 6},
		{"no env_file", func(j *config.Job) { j.EnvFile = "/no/such" }, "env_file: stat /no/such: no such file", -1},
		{"no secret", func(j *config.Job) { j.Secrets = map[string]string{"TOKEN": "/no/such"} }, "secret TOKEN: stat /no/such: no such file", -1},
		{"an environment that is too long", func(j *config.Job) { j.Env = map[string]string{"X": strings.Repeat("x", 200_000)} }, "command cannot be run: /bin/sh: argument list too long", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, o, _ := trial("")
			c.change(&j)
			result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if c.code < 0 && result.ExitCode != nil || c.code >= 0 && (result.ExitCode == nil || *result.ExitCode != c.code) {
				t.Errorf("exit code %v, want %d", result.ExitCode, c.code)
			}
		})
	}
}

func TestCommandKnowsWhichRunItIs(t *testing.T) {
	j, o, _ := trial(`env | sort; cat; ls /proc/self/fd | wc -l`)
	o.Environ = append(o.Environ, "HOME=/var/lib/baton", "NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=5", "LISTEN_FDS=1", "CREDENTIALS_DIRECTORY=/run/c",
		"BATON_REDIS=redis://:password@x", "BATON_LOCK_KEY=wrong", "BATON_CONFIG=/etc/baton/baton.yaml", "BATON_LOCKS=outer=u:1", "SET=1", "FILE=1",
		"TRACEPARENT=the daemon's", "TRACESTATE=the daemon's", "BAGGAGE=b", "OTEL_EXPORTER_OTLP_HEADERS=key=secret", "OTEL_SERVICE_NAME=baton")
	j.EnvFile = file(t, "env", "\n# a comment\n FILE = a file \nQUOTED=\"a 'b' \"\nSET=2\nTOKEN=x\nCRLF=y\r\nEMPTY=\n", 0o600)
	j.Env = map[string]string{"SET": "3"}
	j.Secrets = map[string]string{"TOKEN": file(t, "token", "hush\n", 0o600)}
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"BATON_ATTEMPT=2", "BATON_CONFIG=/etc/baton/baton.yaml", "BATON_EPOCH=42", "BATON_JOB=report", "BATON_LOCK_KEY=baton {x}",
		"BATON_LOCKS=outer=u:1 baton+%7Bx%7D=0b2b5cf2-owner:42", "BATON_NODE_ID=db1", "BATON_OWNER=0b2b5cf2-owner", "BATON_RUN_ID=run-1",
		"BATON_SLOT=2026-01-03T02:30:00+08:00", "BATON_TRIGGER=schedule", "CRLF=y", "EMPTY=", "FILE=a file", "GORACE=atexit_sleep_ms=0",
		"HOME=/var/lib/baton", "PATH=/usr/bin:/bin", "QUOTED=a 'b' ", "SET=3", "TOKEN=***", "4",
	}
	var got []string
	for line := range strings.Lines(result.Output) {
		if !strings.HasPrefix(line, "PWD=") && !strings.HasPrefix(line, "_=") && !strings.HasPrefix(line, "SHLVL=") && !strings.HasPrefix(line, "OLDPWD=") { // a shell's own
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	env, _, err := New(j, errLeaseLost, o).environment(oneRun, nil)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := held.Read(env)
	if err != nil || len(locks) != 2 || locks[1] != (held.Lock{Key: "baton {x}", Owner: "0b2b5cf2-owner", Epoch: 42}) {
		t.Errorf("baton lock within the command would take it that these are held: %v, %v", locks, err)
	}
	if !slices.Contains(env, "TOKEN=hush") {
		t.Error("the command does not get its secret")
	}
}

// If a run has its own parent, the command gets that parent, and no variable of another parent.
func TestCommandKnowsItsTrace(t *testing.T) {
	j, o, _ := trial("")
	j.Env = map[string]string{"TRACEPARENT": "configured", "TRACESTATE": "configured", "OTEL_SERVICE_NAME": "report"}
	for _, c := range []struct{ of, parent, state string }{{"00-aa-bb-01 of ", "00-aa-bb-01 of run-1", ""}, {"", "configured", "configured"}} {
		o.Traceparent = func(id string) string {
			if c.of == "" {
				return ""
			}
			return c.of + id
		}
		env, _, err := New(j, errLeaseLost, o).environment(oneRun, nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(env, "TRACESTATE=configured") != (c.state != "") || !slices.Contains(env, "TRACEPARENT="+c.parent) || !slices.Contains(env, "OTEL_SERVICE_NAME=report") {
			t.Errorf("%q: %v", c.of, env)
		}
	}
}

func TestCommandIsStoppedAsItsContextEnds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
		asTold     bool
	}{
		{"it ends", "echo began; sleep 100 & wait", "baton told the command to end (ended by signal 15 (terminated))", true},
		{"it tidies up", `trap 'echo tidied; exit 0' TERM; echo began; while :; do sleep 0.01; done`, "baton told the command to end (exit code 0)", true},
		{"it does not listen", `trap '' TERM; echo began; while :; do sleep 0.01; done`, "SIGTERM did not end the command, so it was killed", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			j, o, kept := trial(c.text)
			go func() {
				for {
					time.Sleep(5 * time.Millisecond)
					kept.mu.Lock()
					begun := len(kept.list) > 0
					kept.mu.Unlock()
					if begun {
						cancel()
						return
					}
				}
			}()
			result, err := New(j, errLeaseLost, o).Run(ctx, oneRun)
			if err == nil || err.Error() != c.want || result.ExitCode != nil {
				t.Errorf("%v, exit code %v; want %q", err, result.ExitCode, c.want)
			}
			if errors.Is(err, context.Canceled) != c.asTold {
				t.Errorf("%v as context.Canceled: want %v", err, c.asTold)
			}
		})
	}
}

// The command gets no order to stop, but the lease is not extended. The command and its children must be dead so early that the runner can
// report this before the hard stop.
func TestCommandIsDeadBeforeTheHardStop(t *testing.T) {
	t.Parallel()
	const attempts = 10 // a busy machine may be late once, but not each time
	for attempt := 1; ; attempt++ {
		j, o, _ := trial(`trap '' TERM; (setsid sh -c 'trap "" TERM; while :; do sleep 0.01; done' &); while :; do sleep 0.01; done`)
		hard := time.Now().Add(4 * time.Second)
		o.UntilHardStop, o.Drain = func() time.Duration { return time.Until(hard) }, 2*time.Second
		j.Grace = time.Minute
		_, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
		left := time.Until(hard)
		if !errors.Is(err, errLeaseRanOut) {
			t.Error(err)
		}
		least := o.Finish
		if left >= least && left <= 3*time.Second {
			return
		}
		if attempt == attempts {
			t.Fatalf("it was over %v before the hard stop, want that to be a little more than %v", left, least)
		}
	}
}

// Another node may have the lock already.
func TestLostLockLeavesNoLongGrace(t *testing.T) {
	t.Parallel()
	j, o, _ := trial(`trap '' TERM; while :; do sleep 0.01; done`)
	j.Grace, o.Drain = time.Hour, 400*time.Millisecond
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(fmt.Errorf("the term is over: %w", errLeaseLost)) })
	if _, err := runs(t, ctx, New(j, errLeaseLost, o)); err == nil {
		t.Error("a command that was killed has not failed")
	}
}

// runs runs a command that must end by itself.
func runs(t *testing.T, ctx context.Context, p *Program) (result job.Result, err error) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = p.Run(ctx, oneRun)
	}()
	testsupport.Receive(t, "the run to end", ended)
	return result, err
}

// The grace applies only to a command that is told to end. A lease that is shorter than the grace must not end the command.
func TestGraceBeyondTheLeaseEndsNothing(t *testing.T) {
	t.Parallel()
	j, o, _ := trial("sleep 0.7")
	const lease = 20 * time.Second // longer than the command takes on any machine
	o.UntilHardStop, o.Drain = func() time.Duration { return lease }, 400*time.Millisecond
	j.Grace = time.Minute
	if result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err != nil || result.ExitCode == nil {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestWhatACommandLeavesBehindIsEndedAndCounted(t *testing.T) {
	j, o, kept := trial(`echo a; (sleep 1000 &); sleep 1000 & echo b >&2; echo c`)
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if want := "a\nb\nc\nbaton: 2 processes that the command had left behind were ended\n"; err != nil || result.Output != want || kept.text(t) != want {
		t.Errorf("%q, %v; kept %q; want %q", result.Output, err, kept.text(t), want)
	}
}

func TestKilledWardenTakesTheCommandAlong(t *testing.T) {
	t.Parallel()
	// The warden reports the start of the command before anything else.
	j, o, _ := trial(`sleep 0.3; kill -9 $PPID; while :; do sleep 0.01; done`)
	_, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if err == nil || !strings.Contains(err.Error(), "the warden process was killed, and the command with it") {
		t.Error(err)
	}
}

// The run waits only for its command, and a short time for the command's last output.
func TestHangingStoreHoldsNoRunUp(t *testing.T) {
	t.Parallel()
	j, o, kept := trial(`for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.1; done`)
	kept.hangs = make(chan struct{})
	defer close(kept.hangs)
	result, err := runs(t, t.Context(), New(j, errLeaseLost, o))
	if err != nil || result.Output != "1\n2\n3\n4\n5\n6\n7\n" {
		t.Errorf("%+v, %v", result, err)
	}
}

// 300 MB of output must pass without delay, and only the end of the output must remain in memory.
func TestFloodOfOutputIsBounded(t *testing.T) {
	j, o, kept := trial(`head -c 300000000 /dev/zero | tr '\0' x; echo; echo end`)
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	took := time.Since(began)
	runtime.ReadMemStats(&during)
	if err != nil || len(result.Output) != keepTail || !strings.HasSuffix(result.Output, "xxx\nend\n") {
		t.Fatalf("%d bytes, %v", len(result.Output), err)
	}
	shipped := 0
	for _, p := range kept.list {
		shipped = max(shipped, len(p.Text))
	}
	if most := int(took/shipEvery) + 3; shipped > o.Keep || len(kept.list) > most {
		t.Errorf("%d pieces of up to %d bytes in %v", len(kept.list), shipped, took)
	}
	last := kept.list[len(kept.list)-1]
	const tail = "x\nend\n"
	text := last.Text[max(0, len(last.Text)-len(tail)):] // may be less, if the last bytes came alone
	if end := last.Offset + int64(len(last.Text)); end != 300_000_005 || string(text) != tail[len(tail)-len(text):] {
		t.Errorf("the last piece ends at %d, with %q", end, text)
	}
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if grown := int64(during.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("the process has grown by %d MiB", grown>>20)
	}
	t.Logf("300 MB in %v, %d pieces; %d MiB allocated in all", took, len(kept.list), (during.TotalAlloc-before.TotalAlloc)>>20)
}

// If the output is not valid text, the history contains valid text nevertheless.
func TestTailOfTheOutputIsValidText(t *testing.T) {
	for _, c := range []struct{ print, want string }{
		{"", ""},
		{"a\xffb", "a\uFFFDb"},
		{strings.Repeat("é", keepTail), strings.Repeat("é", keepTail/2)},
		{"x" + strings.Repeat("é", keepTail), strings.Repeat("é", keepTail/2)},
		{strings.Repeat("é", keepTail) + "x", strings.Repeat("é", keepTail/2-1) + "x"},
	} {
		p := newPrintout(nil, 1<<16, nil, nil, zap.NewNop())
		_, _ = p.Write([]byte(c.print))
		p.close(0)
		if got := p.tail(); got != c.want {
			t.Errorf("%.20q…: %d bytes %.20q…, want %d", c.print, len(got), got, len(c.want))
		}
	}
}

func TestEndOfWhatWasWrittenIsKept(t *testing.T) {
	var all []byte
	b := tailBuffer{limit: 3000}
	for i := range 400 {
		piece := bytes.Repeat([]byte(strconv.Itoa(i)+","), i%37)
		if i%50 == 49 {
			piece = bytes.Repeat(piece, 20) // more than the store keeps
		}
		all = append(all, piece...)
		b.write(piece)
		for _, from := range []int{0, len(all) - 5000, len(all) - 2999, len(all) - 100, len(all)} {
			at := max(from, len(all)-max(len(b.ring), 0), 0)
			if offset, got := b.from(int64(from)); offset != int64(at) || !bytes.Equal(got, all[at:]) {
				t.Fatalf("after %d bytes, from %d: %d bytes from %d, want %d from %d", len(all), from, len(got), offset, len(all)-at, at)
			}
		}
	}
	if len(b.ring) != 3000 {
		t.Errorf("it holds %d bytes", len(b.ring))
	}
}

// A command that is stopped by SIGSTOP, as by the user of a terminal, must also be ended.
func TestStoppedCommandIsEnded(t *testing.T) {
	t.Parallel()
	j, o, _ := trial("kill -STOP $$")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := runs(t, ctx, New(j, errLeaseLost, o)); err == nil {
		t.Error("a command that was ended has not failed")
	}
}
