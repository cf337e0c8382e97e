package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// process is a child that ends when the test process ends, however that happens.
type process struct {
	pid  int
	done chan struct{} // closed once the child has been waited for
	code int           // its exit code, minus the signal that killed it; set before done
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not the
		// process: keep that thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in the state
			p.code = exitCode(cmd.ProcessState)
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -int(w.Signal())
	}
	return s.ExitCode()
}

func (p *process) signal(sig syscall.Signal) error {
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", sig, p.pid, err)
	}
	return nil
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) wait(timeout time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// Result is how a command of baton ended.
type Result struct {
	Code           int
	Stdout, Stderr string
	Took           time.Duration
}

// Command runs baton to its end, with nothing of baton's in its environment but
// env. It is killed, and the test fails, if it takes longer than timeout.
func Command(t testing.TB, timeout time.Duration, env []string, args ...string) Result {
	t.Helper()
	cmd := exec.Command(Build(t), args...)
	cmd.Env = environment(env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	p, err := startProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if !p.wait(timeout) {
		_ = p.signal(syscall.SIGKILL)
		<-p.done
		t.Fatalf("baton %v has not ended after %v; standard error:\n%s", args, timeout, stderr.String())
	}
	return Result{Code: p.code, Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(began)}
}
