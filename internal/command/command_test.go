//go:build linux

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"baton/internal/command"
	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
)

// soon is a generous limit, because two cores may run all tests at the same time.
const soon = time.Minute

// TestMain also makes the test's binary the warden, and a process that runs a command and may be stopped or killed.
func TestMain(m *testing.M) {
	child.InheritNoIgnoredSignals()
	// Under the race detector a process would otherwise live for a second after its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "runner":
		os.Exit(runner(os.Args[2], os.Args[3], os.Args[4]))
	case "lender":
		os.Exit(lender(os.Args[2], os.Args[3]))
	case "keeper":
		os.Exit(keeper())
	default:
		os.Exit(m.Run())
	}
}

func warden() []string { return []string{"/proc/self/exe", "warden"} }

// sh returns the command line of a shell, with a short grace.
func sh(script string) command.Spec {
	return command.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Warden: warden(), Grace: 200 * time.Millisecond}
}

// run runs a command to its end, within a time limit.
func run(t *testing.T, ctx context.Context, s command.Spec) command.Result {
	t.Helper()
	type end struct {
		command.Result
		error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := command.Run(ctx, s)
		ended <- end{r, err}
	}()
	select {
	case e := <-ended:
		if e.error != nil {
			t.Fatal(e.error)
		}
		return e.Result
	case <-time.After(2 * soon):
		t.Fatal("the command does not end")
		return command.Result{}
	}
}

// witness is a pipe that ends when every process that holds its other end is dead.
type witness struct {
	r, w  *os.File
	lines chan string
	ended chan struct{}
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := &witness{r: r, w: w, lines: make(chan string, 100), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for b := make([]byte, 4096); ; {
			n, err := r.Read(b)
			for line := range strings.Lines(string(b[:n])) {
				o.lines <- strings.TrimSpace(line)
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = w.Close(); _ = r.Close() })
	return o
}

// hears waits for a line that the command writes.
func (o *witness) hears(t *testing.T) string {
	t.Helper()
	select {
	case line := <-o.lines:
		return line
	case <-time.After(soon):
		t.Fatal("the command says nothing")
		return ""
	}
}

// allDead waits until all holders are dead. The test's own end must be closed.
func (o *witness) allDead(t *testing.T, within time.Duration) time.Time {
	t.Helper()
	_ = o.w.Close()
	select {
	case <-o.ended:
	case <-time.After(within):
		t.Fatalf("something that the command has started is alive after %v", within)
	}
	return time.Now()
}

func TestTheCommandIsItself(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "noshebang")
	if err := os.WriteFile(script, []byte("exit $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		spec   command.Spec
		code   int
		stdout string
	}{
		{"true", sh("true"), 0, ""},
		{"its exit code", sh("exit 42"), 42, ""},
		{"a signal", sh("kill -9 $$"), 137, ""},
		{"its output", sh("echo a; echo b >&2; echo c"), 0, "a\nb\nc\n"},
		{"its input", sh("cat"), 0, "hello"},
		{"its environment", sh(`echo "$MARK"`), 0, "mark\n"},
		{"its directory", sh("pwd -P"), 0, dir + "\n"},
		{"no other descriptors", sh("ls /proc/self/fd | wc -l"), 0, "4\n"}, // the three streams, and the directory itself
		{"a script without a shell's name", command.Spec{Path: script, Argv: []string{"noshebang", "7"}, Warden: warden(), Grace: time.Second}, 7, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.spec.Stdin, c.spec.Stdout, c.spec.Stderr = strings.NewReader("hello"), &out, &out
			c.spec.Env, c.spec.Dir = append(os.Environ(), "MARK=mark"), dir
			r := run(t, t.Context(), c.spec)
			if r.ExitCode() != c.code || out.String() != c.stdout || r.Stopped {
				t.Errorf("%+v, code %d, output %q; want %d, %q", r, r.ExitCode(), out.String(), c.code, c.stdout)
			}
		})
	}
}

func TestACommandThatCannotBeRunIsToldApart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"nosuchcommand":          command.ErrNotFound,
		filepath.Join(dir, "no"): command.ErrNotFound,
		plain:                    command.ErrNoExec,
		dir:                      command.ErrNoExec,
	} {
		if _, err := command.Find(name); !errors.Is(err, want) {
			t.Errorf("find %s: %v, want %v", name, err, want)
		}
	}
	if err := os.Unsetenv("PATH"); err != nil {
		t.Fatal(err)
	}
	if path, err := command.Find("sh"); err != nil || path != "/bin/sh" {
		t.Errorf("find sh without a PATH: %q, %v", path, err)
	}
	// Find cannot see these errors, so the kernel reports them.
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := command.Run(t.Context(), command.Spec{Path: script, Argv: []string{"script"}, Warden: warden(), Grace: time.Second}); !errors.Is(err, command.ErrNoExec) ||
		!strings.Contains(err.Error(), "/no/such/interpreter does not exist") {
		t.Errorf("run a script without its interpreter: %v", err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\r\necho ran\r\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := command.Run(t.Context(), command.Spec{Path: script, Argv: []string{"script"}, Warden: warden(), Grace: time.Second}); !errors.Is(err, command.ErrNoExec) ||
		!strings.Contains(err.Error(), "CR LF") || strings.Contains(err.Error(), "does not exist") {
		t.Errorf("run a script of Windows: %v", err)
	}
	// This is a program of another machine, whose file ends in a line that a shell would run.
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte("\x7fELF\x02\x01\x01\x00\x00\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err := command.Run(t.Context(), command.Spec{Path: foreign, Argv: []string{"foreign"}, Warden: warden(), Grace: time.Second, Stdout: &out})
	if !errors.Is(err, command.ErrNoExec) || !strings.Contains(err.Error(), "another architecture") || out.Len() > 0 {
		t.Errorf("run a program of another machine: %v, output %q", err, &out)
	}
}

// family starts a grandchild in the group, a grandchild in its own session, and an orphan. All of them ignore every signal that can be
// ignored.
const family = `trap '' TERM HUP INT
sleep 1000 &
setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &
(setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &)
sleep 0.1; echo ready
`

func TestAStoppedCommandIsDeadWithAllItsFamily(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := newWitness(t)
	s := sh(family + "wait; sleep 1000; sleep 1000")
	s.Stdout = o.w
	go func() { o.hears(t); cancel() }()
	r := run(t, ctx, s)
	if !r.Stopped || r.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want it killed", r)
	}
	o.allDead(t, time.Second)
}

func TestAStoppedCommandMayTidyUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := newWitness(t)
	s := sh(`trap 'sleep 0.1; echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	s.Stdout, s.Grace = o.w, 2*soon
	go func() { o.hears(t); cancel() }()
	began := time.Now()
	r := run(t, ctx, s)
	if got := o.hears(t); got != "tidied" || !r.Stopped || r.Code != 3 {
		t.Errorf("%+v, said %q", r, got)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("it took %v: the grace was waited for although nothing was left", took)
	}
}

func TestWhatACommandLeavesBehindIsEnded(t *testing.T) {
	o := newWitness(t)
	s := sh(family + "exit 5")
	s.Stdout = o.w
	r := run(t, t.Context(), s)
	if r.Stopped || r.ExitCode() != 5 || r.Rest < 3 {
		t.Errorf("%+v, want its own exit code 5, and at least 3 left behind", r)
	}
	o.allDead(t, time.Second)
}

func TestWhatACommandLeavesBehindMayStay(t *testing.T) {
	o := newWitness(t)
	s := sh("sleep 1000 & echo $!")
	s.Stdout, s.Leave = o.w, true
	if r := run(t, t.Context(), s); r.ExitCode() != 0 {
		t.Errorf("%+v", r)
	}
	pid, err := strconv.Atoi(o.hears(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("what was to stay is gone: %v", err)
	}
	o.allDead(t, soon)
}

func TestSignalsArePassedOn(t *testing.T) {
	o := newWitness(t)
	signals := make(chan os.Signal, 8)
	s := sh(`for s in HUP INT QUIT USR1 USR2; do trap "echo $s" $s; done; trap 'echo TERM; exit 9' TERM; echo ready; while :; do sleep 0.01; done`)
	s.Stdout, s.Signals = o.w, signals
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon) // ends a command that ignores its signals
	defer cancel()
	ended := make(chan command.Result, 1)
	go func() {
		r, err := command.Run(ctx, s)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	o.hears(t)
	for _, c := range []struct {
		signal syscall.Signal
		name   string
	}{
		{syscall.SIGHUP, "HUP"}, {syscall.SIGINT, "INT"}, {syscall.SIGQUIT, "QUIT"},
		{syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}, {syscall.SIGTERM, "TERM"},
	} {
		signals <- c.signal
		if got := o.hears(t); got != c.name {
			t.Errorf("%v: the command heard %s", c.signal, got)
		}
	}
	if r := <-ended; r.ExitCode() != 9 || r.Stopped {
		t.Errorf("%+v", r)
	}
}

func TestTheDeadlineIsKeptAndMayMove(t *testing.T) {
	// A busy machine may be late by more than the first times. A real error occurs at every scale.
	for ms := time.Millisecond; ; ms *= 2 {
		r, took, alive := movedDeadline(t, ms)
		if r.Stopped && took >= 1000*ms && alive <= 1200*ms {
			return
		}
		if ms == 8*time.Millisecond {
			t.Fatalf("%+v after %v, seen alive after %v; want it dead a little before %v", r, took, alive, 1200*ms)
		}
	}
}

// movedDeadline runs a family with a deadline at 700 ms, which is moved to 1,200 ms after 400 ms. alive is the time when a process of
// the family was last seen.
func movedDeadline(t *testing.T, ms time.Duration) (r command.Result, took, alive time.Duration) {
	t.Helper()
	began := time.Now()
	until := began.Add(700 * ms)
	s := sh(family + "wait; sleep 1000; sleep 1000")
	s.Grace, s.Env = 100*ms, append(os.Environ(), marker(t))
	s.Until = func() time.Duration {
		if time.Since(began) > 400*ms {
			return time.Until(until.Add(500 * ms))
		}
		return time.Until(until)
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		for seen := time.Since(began); seen < 1500*ms; seen = time.Since(began) {
			if len(marked(t)) > 0 {
				alive = seen
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	r, err := command.Run(t.Context(), s)
	took = time.Since(began)
	watch.Wait()
	if err != nil && !errors.Is(err, command.ErrTooLate) { // the command may begin in time at another scale
		t.Fatal(err)
	}
	return r, took, alive
}

// runner runs a script until it gets an order to stop. While it is alive, it moves the deadline to life from now. It reports how the
// command ended.
func runner(grace, life, script string) int {
	g, err := time.ParseDuration(grace)
	if err != nil {
		return 2
	}
	l, err := time.ParseDuration(life)
	if err != nil {
		return 2
	}
	s := sh(script)
	s.Stdout, s.Stderr, s.Grace = os.Stdout, os.Stderr, g
	s.Until = func() time.Duration { return l }
	r, err := command.Run(context.Background(), s)
	_ = json.NewEncoder(os.Stderr).Encode(map[string]any{"result": r, "error": fmt.Sprint(err)})
	return 0
}

// runnerProcess is a process that runs a command.
type runnerProcess struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	out  *witness
	life time.Duration // the time that the runner gives its command
}

// startRunner starts the process, and waits until the command of the process runs.
func startRunner(t *testing.T) *runnerProcess {
	t.Helper()
	return startRunnerFor(t, time.Second)
}

// startRunnerFor is startRunner with another lifetime. A longer lifetime is needed if the machine is so busy that the command prints
// nothing before its deadline.
func startRunnerFor(t *testing.T, life time.Duration) *runnerProcess {
	t.Helper()
	p := startScript(t, life, family+"wait; sleep 1000; sleep 1000")
	if n := len(marked(t)); n < 4 {
		t.Fatalf("the command's family has %d members", n)
	}
	return p
}

// startScript starts a process that runs a script, and waits until the script prints something.
func startScript(t *testing.T, life time.Duration, script string) *runnerProcess {
	t.Helper()
	for ; ; life *= 2 {
		p := newRunner(t, life, script)
		select {
		case <-p.out.lines:
			return p
		case <-time.After(min(life, time.Minute) + busy):
			if life > time.Minute {
				t.Fatal("the command says nothing")
			}
		}
		p.end(t)
	}
}

func newRunner(t *testing.T, life time.Duration, script string) *runnerProcess {
	t.Helper()
	p := &runnerProcess{life: life, out: newWitness(t), cmd: exec.Command("/proc/self/exe", "runner", "200ms", life.String(), script)}
	p.cmd.Stdout, p.cmd.Stderr = p.out.w, &p.log
	p.cmd.Env = append(os.Environ(), marker(t))
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

func (p *runnerProcess) end(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Kill() // usually it has already ended
	_ = p.cmd.Wait()
	for _, pid := range marked(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// guard and warden return the processes between this process and its command.
func (p *runnerProcess) guard(t *testing.T) int { t.Helper(); return childOf(t, p.cmd.Process.Pid) }

func (p *runnerProcess) warden(t *testing.T) int { t.Helper(); return childOf(t, p.guard(t)) }

func (p *runnerProcess) signal(t *testing.T, pid int, s syscall.Signal) time.Time {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// marker is in the environment of all processes that a test starts, but not of processes that another run of the test has left.
func marker(t *testing.T) string { return fmt.Sprintf("COMMAND_TEST=%s %d", t.Name(), os.Getpid()) }

// marked returns the living processes of a test's command, and of all its descendants, by their environment.
func marked(t *testing.T) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, name := range names {
		dir := filepath.Dir(name)
		text, _ := os.ReadFile(name) // empty for a dead process
		command, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if strings.Contains("\x00"+string(text), "\x00"+marker(t)+"\x00") && (string(command) == "sh\n" || string(command) == "sleep\n") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// deadBy waits until the family is dead, at most until the deadline.
func (p *runnerProcess) deadBy(t *testing.T, deadline time.Time) {
	t.Helper()
	for len(marked(t)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are alive after their deadline", len(marked(t)))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// childOf returns the only child of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}

// busy is the additional time that a busy machine may take.
const busy = time.Second

func TestACommandDiesWithWhoeverRanIt(t *testing.T) {
	p := startRunner(t)
	killed := p.signal(t, p.cmd.Process.Pid, syscall.SIGKILL)
	p.deadBy(t, killed.Add(p.life+busy))
}

func TestACommandIsDeadInTimeAlthoughWhoeverRanItIsStopped(t *testing.T) {
	p := startRunner(t)
	stopped := p.signal(t, p.cmd.Process.Pid, syscall.SIGSTOP)
	p.deadBy(t, stopped.Add(p.life+busy))
	p.signal(t, p.cmd.Process.Pid, syscall.SIGCONT)
	_ = p.cmd.Wait() // the log says how it ended
	if !strings.Contains(p.log.String(), `"Stopped":true`) {
		t.Errorf("the process that woke says: %s", &p.log)
	}
}

func TestACommandIsDeadInTimeAlthoughItsWardenIsStoppedToo(t *testing.T) {
	p := startRunner(t)
	guard, warden := p.guard(t), p.warden(t)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGSTOP)
	p.signal(t, guard, syscall.SIGSTOP)
	stopped := p.signal(t, warden, syscall.SIGSTOP)
	p.deadBy(t, stopped.Add(p.life+busy))
}

// A process that has left its group cannot be found any more when guard and warden are killed at the same time.
func TestOutputThatIsKeptOpenHoldsNobodyUpWhenTheWardenIsKilled(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left") // exists after the process has left the group
	spec := sh(`setsid sh -c ': >` + left + `; exec sleep 3600' & while [ ! -e ` + left + ` ]; do sleep 0.01; done
		read -r _ _ _ guard _ < /proc/$PPID/stat; kill -9 $guard $PPID; sleep 3600`)
	var out strings.Builder
	spec.Stdout, spec.Env = &out, append(os.Environ(), marker(t))
	ended := make(chan error, 1)
	go func() {
		_, err := command.Run(t.Context(), spec)
		ended <- err
	}()
	defer func() {
		for _, pid := range marked(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}()
	if err := testsupport.Receive(t, "the end of a command whose output is kept open", ended); err == nil {
		t.Error("nobody noticed that the warden was killed")
	}
	if len(marked(t)) == 0 {
		t.Error("nothing keeps the output open: nothing to test")
	}
}

// Without a guard only the process group can be found.
func TestACommandDiesWithItsWarden(t *testing.T) {
	p := startRunnerFor(t, time.Hour)
	const all, group = 6, 2 // processes of the family
	testsupport.Await(t, "the whole family of the command", func() bool { return len(marked(t)) == all })
	guard, warden := p.guard(t), p.warden(t)
	p.signal(t, guard, syscall.SIGKILL)
	p.signal(t, warden, syscall.SIGKILL)
	_ = p.cmd.Wait() // the log says how it ended
	if !strings.Contains(p.log.String(), "the warden process was killed") {
		t.Errorf("the process says: %s", &p.log)
	}
	left := len(marked(t))
	for deadline := time.Now().Add(busy); left > all-group && time.Now().Before(deadline); left = len(marked(t)) {
		time.Sleep(5 * time.Millisecond) // the processes are killed, but not dead yet
	}
	if left > all-group {
		t.Errorf("%d of %d are left: the group was not killed", left, all)
	}
}
