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

// suite runs go test, and shows its events by gotestsum.
type suite struct {
	options
	began    time.Time
	record   *record
	lines    sync.Mutex // guards show, so that each event is one line
	show     io.Writer
	children int   // number of processes that own will contain
	shower   int   // id of the process that shows the events
	own      []int // processes that other code of this program waits for; guarded by lines
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
	defer func() { endChildren(0) }() // before the directories of these processes are removed
	s.record.expected = len(r.packages)
	code, err = s.runAll(ctx, r, append(append(os.Environ(), g.Env()...), s.plan.env...))
	endChildren(0)
	s.record.print(os.Stdout, time.Since(s.began), childCPU(), ctx.Err() != nil)
	if ctx.Err() != nil {
		return exitInterrupted, errors.New("interrupted")
	}
	return code, err
}

// runAll runs go test, and then gives some tests a second try.
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

// secondTries repeats the tests that only a declared wait has ended, each in its own run. code is the exit code of the first run.
// secondTries returns 0 if no other test has failed, and all repeated tests pass now.
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

// startShow starts gotestsum, which reads events and prints progress and failures. The function end waits until gotestsum has ended.
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
		_ = in.Close() // gotestsum reads to the end of its input
		err := cmd.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
			return nil // an exit code because tests failed, which go test also reports
		}
		return err
	}, nil
}

// twice runs packages, and repeats the packages whose race detector broke.
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

// goTest runs go test until it has ended, or until ctx ends.
func (s *suite) goTest(ctx context.Context, r goTest, env []string, record *record) (code int, err error) {
	// make runs vet separately. Without the tables for a debugger (-w) linking takes half of the time.
	args := []string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-w", "-p", strconv.Itoa(s.parallel), "-timeout", s.timeout.String()}
	if r.only != "" {
		args = append(args, "-run", "^"+r.only+"$")
	} else if s.plan.skip != "" {
		args = append(args, "-skip", s.plan.skip)
	}
	// With the same setting as for the program itself, the dependencies are compiled only once.
	env = append(env, "CGO_ENABLED=0")
	if s.plan.race {
		args = append(args, "-race")
		// By default a program with the race detector sleeps for a second before it exits.
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
	// A test process that outlives go test keeps the pipe open, so all children must end when ctx ends.
	stop := context.AfterFunc(ctx, func() { endChildren(s.shower) })
	defer stop()
	s.follow(out, record)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return 1, nil // the events of go test say why
	}
	return 0, err
}

// follow records events and forwards them to gotestsum, line by line.
func (s *suite) follow(out io.Reader, record *record) {
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			record.event(line)
			s.lines.Lock()
			_, _ = s.show.Write(line) // if gotestsum ends early, it says why
			s.lines.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// owns records a child that its starter waits for.
func (s *suite) owns(cmd *exec.Cmd) (pid int) {
	s.lines.Lock()
	defer s.lines.Unlock()
	s.own = append(s.own, cmd.Process.Pid)
	return cmd.Process.Pid
}

// adopt waits for adopted processes that have ended, until ctx ends.
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

// tick prints which packages are running, while no other output is printed.
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

// ownGroup prevents a terminal's Ctrl-C from reaching the children, because the suite itself ends them in order.
var ownGroup = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
