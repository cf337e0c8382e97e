package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"baton/internal/testsupport/ground"
)

const exitInterrupted = 130

// suite runs go test, and shows its events by way of gotestsum.
type suite struct {
	options
	began    time.Time
	record   *record
	lines    sync.Mutex // one line of events at a time goes to show
	show     io.Writer
	children int   // how many processes there will be in own
	shower   int   // the process that shows
	own      []int // the processes that this one waits for by itself; guarded by lines
}

func newSuite(o options) *suite {
	return &suite{options: o, began: time.Now(), record: newRecord(o.plan.race)}
}

func (s *suite) run(ctx context.Context, r goTest) (code int, err error) {
	g, err := ground.NewRun()
	if err != nil {
		return 1, fmt.Errorf("make the directories of this run: %w", err)
	}
	defer g.Remove()
	if err := adoptOrphans(); err != nil {
		return 1, err
	}
	defer func() { endChildren(0) }() // before their directories go
	s.record.expected = len(r.packages)
	code, err = s.runAll(ctx, r, append(append(os.Environ(), g.Env()...), s.plan.env...))
	endChildren(0)
	s.record.print(os.Stdout, time.Since(s.began), childCPU(), ctx.Err() != nil)
	if ctx.Err() != nil {
		return exitInterrupted, errors.New("interrupted")
	}
	return code, err
}

// runAll runs go test, and then the second tries.
func (s *suite) runAll(ctx context.Context, r goTest, env []string) (code int, err error) {
	shown, err := s.startShow(env)
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.children = 2
	go s.tick(ctx)
	go s.adopt(ctx)
	code, err = s.twice(ctx, r, env)
	if code != 0 && err == nil && ctx.Err() == nil {
		code, err = s.secondTries(ctx, code, env)
	}
	return code, errors.Join(err, shown())
}

// secondTries runs the tests again that only a declared wait has ended, each alone. code is that of
// the first run; it becomes 0 if nothing else was red, and all of them pass now.
func (s *suite) secondTries(ctx context.Context, code int, env []string) (int, error) {
	for _, again := range s.record.secondTries() {
		t := test{again.packages[0], again.only}
		fmt.Printf("a declared wait ran out; once more, alone: %s %s\n", short(t.pkg), t.name)
		s.oneMoreChild()
		record := newRecord(s.plan.race)
		if c, err := s.goTest(ctx, again, env, record); err != nil || ctx.Err() != nil {
			return code, err
		} else if c == 0 && record.passed(t) {
			s.record.passedAlone(t)
		}
	}
	if s.record.anyFlaky() && s.record.green() {
		return 0, nil
	}
	return code, nil
}

func (s *suite) oneMoreChild() { s.lines.Lock(); s.children++; s.lines.Unlock() }

// startShow starts gotestsum, which reads events and prints progress and failures. The
// function that it returns ends it.
func (s *suite) startShow(env []string) (end func() error, err error) {
	format := "pkgname-and-test-fails"
	if s.plan.live {
		format = "standard-verbose"
	}
	cmd := exec.Command("go", "tool", "-modfile=tools/gotestsum/go.mod", "gotestsum", "--format", format, "--raw-command", "--", "cat")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
	cmd.SysProcAttr = ownGroup
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start gotestsum: %w", err)
	}
	s.show, s.shower = in, s.owns(cmd)
	return func() error {
		_ = in.Close() // it reads to the end
		err := cmd.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
			return nil // tests failed: go test says so, too
		}
		return err
	}, nil
}

// twice runs packages once more whose race detector broke.
func (s *suite) twice(ctx context.Context, r goTest, env []string) (code int, err error) {
	code, err = s.goTest(ctx, r, env, s.record)
	broken, passed := s.record.again(r.packages)
	if len(broken) == 0 || err != nil || ctx.Err() != nil {
		return code, err
	}
	fmt.Printf("the race detector itself broke; once more: %s\n", strings.Join(broken, ", "))
	s.oneMoreChild()
	r.packages = broken
	if code, err = s.goTest(ctx, r, env, s.record); !passed {
		code = max(code, 1)
	}
	return code, err
}

// goTest runs go test to its end, or until ctx ends.
func (s *suite) goTest(ctx context.Context, r goTest, env []string, record *record) (code int, err error) {
	// make vets by itself. Without the tables for a debugger (-w) linking takes half of the time.
	args := []string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-w", "-p", strconv.Itoa(s.parallel), "-timeout", s.timeout.String()}
	if r.only != "" {
		args = append(args, "-run", "^"+r.only+"$")
	} else if s.plan.skip != "" {
		args = append(args, "-skip", s.plan.skip)
	}
	// Built as the program itself is, the dependencies are compiled once for both.
	env = append(env, "CGO_ENABLED=0")
	if s.plan.race {
		args = append(args, "-race")
		// By default each program of a test sleeps for a second before it exits.
		env = append(env, "CGO_ENABLED=1", "GORACE=atexit_sleep_ms=0")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, r.packages...)...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	cmd.SysProcAttr = ownGroup
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start go test: %w", err)
	}
	s.owns(cmd)
	// A test process that outlives go test keeps the pipe open: it must end with the run.
	stop := context.AfterFunc(ctx, func() { endChildren(s.shower) })
	defer stop()
	s.follow(out, record)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return 1, nil // its events say why
	}
	return 0, err
}

// follow records events and passes them on, a line at a time.
func (s *suite) follow(out io.Reader, record *record) {
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			record.event(line)
			s.lines.Lock()
			_, _ = s.show.Write(line) // gotestsum that ends early says why
			s.lines.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// owns notes a child that is waited for where it was started.
func (s *suite) owns(cmd *exec.Cmd) (pid int) {
	s.lines.Lock()
	defer s.lines.Unlock()
	s.own = append(s.own, cmd.Process.Pid)
	return cmd.Process.Pid
}

// adopt reaps what ends among the adopted processes, until ctx ends.
func (s *suite) adopt(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		s.lines.Lock()
		own := slices.Clone(s.own)
		ready := len(own) == s.children
		s.lines.Unlock()
		if ready {
			reap(own)
		}
	}
}

// tick tells what is under way while nothing else is printed.
func (s *suite) tick(ctx context.Context) {
	t := time.NewTicker(15 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			fmt.Println(s.record.progress(time.Since(s.began)))
		}
	}
}

// ownGroup keeps a terminal's Ctrl-C from the children: the suite ends them itself, in order.
var ownGroup = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
