package baton_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/pkg/baton"
)

var program = testsupport.Program("baton/cmd/baton")

// batonCommand runs a baton command that must succeed, and returns its output.
func batonCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(program(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("baton %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// process is a process that leads.
type process struct {
	*child.Process
	lines chan string
}

func startLeader(t *testing.T, r *testsupport.Redis, manner string) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "leader", r.URL(), manner)
	// cmd.StdoutPipe is not used, because it is closed when the process ends, so that its last output could be lost.
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	p, err := child.Start(cmd)
	_ = in.Close() // the process has its own copy
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer out.Close()
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if !p.Exited() {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			p.Wait(time.Minute)
		}
	})
	return &process{p, lines}
}

// says waits for a line with the given prefix, and returns the rest of the line.
func (p *process) says(t *testing.T, prefix string) string {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("it ends without saying %q", prefix)
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return strings.TrimSpace(rest)
			}
		case <-deadline:
			t.Fatalf("it does not say %q", prefix)
		}
	}
}

// TestLeaderThatIsKilledIsFollowed checks that the next leader follows a killed leader after the rest of the lease.
func TestLeaderThatIsKilledIsFollowed(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	first := startLeader(t, r, "")
	epoch := first.says(t, "begin")
	second := startLeader(t, r, "")
	if err := first.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if next := second.says(t, "begin"); next <= epoch {
		t.Errorf("epoch %s follows %s", next, epoch)
	}
}

// TestLeaderThatWasStoppedDoesNotLeadOn checks that a stopped process sees that its term is over when it continues, and that its epoch is
// below the next epoch.
func TestLeaderThatWasStoppedDoesNotLeadOn(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	first := startLeader(t, r, "")
	epoch := first.says(t, "begin")
	second := startLeader(t, r, "")
	if err := first.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := second.says(t, "begin")
	if err := first.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	end := first.says(t, "end")
	if !strings.HasPrefix(end, epoch+" false ") || next <= epoch {
		t.Errorf("it ended as %q, and epoch %s follows %s", end, next, epoch)
	}
	if err := second.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if again := first.says(t, "begin"); again <= next {
		t.Errorf("epoch %s follows %s", again, next)
	}
}

// TestWorkThatDoesNotEndIsEndedWithItsProcess checks that the process of work that does not end is ended before another process can lead.
func TestWorkThatDoesNotEndIsEndedWithItsProcess(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	first := startLeader(t, r, "deaf")
	first.says(t, "begin")
	r.Client(t).Do("SET", "lock", "another", "PX", 3600*1000)
	first.says(t, `panic: baton: lock "lock": the work of epoch`)
	if !first.Wait(time.Minute) || first.Code() != 2 {
		t.Errorf("it is alive: %v", !first.Exited())
	}
}

// TestTheSameLockAsBatons checks that baton's commands show library nodes and give orders to them, and that their locks exclude each other.
func TestTheSameLockAsBatons(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := &post{t: t}
	causes := make(chan error, 10)
	work := func(ctx context.Context, term baton.Term) error {
		p.enter(term)
		defer p.inside.Add(-1)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}
	stop := start(t, lockOn(r, "library"), work)
	testsupport.Await(t, "it leads", func() bool { return p.terms.Load() == 1 })
	refused, err := exec.Command(program(t), "lock", "--redis", r.URL(), "--wait", "0", "lock", "--", "true").CombinedOutput()
	if code := exitCode(err); code != 75 || !strings.Contains(string(refused), "held by library") {
		t.Errorf("baton lock beside it: %v, %s", err, refused)
	}
	if out := batonCommand(t, "who", "--redis", r.URL(), "--lock-key", "lock", "-o", "json"); !strings.Contains(out, `"library"`) {
		t.Errorf("baton who: %s", out)
	}
	batonCommand(t, "stepdown", "--redis", r.URL(), "--lock-key", "lock", "--reason", "test")
	if cause := <-causes; cause.Error() != baton.ErrSteppedDown.Error() {
		t.Errorf("its context ended because of %v", cause)
	}
	testsupport.Await(t, "alone it leads again", func() bool { return p.terms.Load() == 2 })
	stop()
	// This checks the opposite direction.
	cmd := exec.Command(program(t), "lock", "--redis", r.URL(), "lock", "--", "sh", "-c", "echo $BATON_EPOCH; read end")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var epoch int64
	if _, err := fmt.Fscan(out, &epoch); err != nil || epoch <= p.last.Load() {
		t.Errorf("epoch %d of baton lock, after %d: %v", epoch, p.last.Load(), err)
	}
	seen := make(chan baton.Event, 100)
	l := lockOn(r, "library")
	l.OnChange = func(e baton.Event) { seen <- e }
	start(t, l, work)
	if e := <-seen; e.Kind != baton.EventFollowing || e.Epoch != epoch {
		t.Errorf("beside baton lock: %+v", e)
	}
	p.last.Store(epoch)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // fails, because read gets no input
	testsupport.Await(t, "it leads after baton lock", func() bool { return p.terms.Load() == 3 })
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as exec returns it
		return e.ExitCode()
	}
	return -1
}

// TestDependenciesAreFew checks that a program that uses this package gets only these libraries.
func TestDependenciesAreFew(t *testing.T) {
	const line = "{{if .Module}}{{.Module.Path}} {{end}}{{.ImportPath}}"
	out, err := exec.Command("go", "list", "-deps", "-f", line, "baton/pkg/baton").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := []string{
		"baton", "github.com/gomodule/redigo", "github.com/cenkalti/backoff/v5",
		"github.com/satori/go.uuid", "golang.org/x/sync", "golang.org/x/sys",
	}
	unwanted := []string{"net/http", "database/sql", "os/signal", "flag", "expvar", "baton/internal/config"}
	lines := 0
	for line := range strings.Lines(string(out)) {
		lines++
		module, pkg, has := strings.Cut(strings.TrimSpace(line), " ")
		if !has {
			module, pkg = "", module
		}
		if has && !slices.Contains(modules, module) {
			t.Errorf("%s of %s comes along", pkg, module)
		}
		if slices.Contains(unwanted, pkg) {
			t.Errorf("%s comes along", pkg)
		}
	}
	if lines < 50 {
		t.Errorf("go list says %q", out)
	}
}
