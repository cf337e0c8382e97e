package testsupport

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is a child that ends when this process ends, however that happens.
type process struct {
	pid  int
	done chan struct{} // closed once the child has been waited for
}

// startProcess runs argv in dir with its output appended to logFile, as cred if
// that is not nil.
func startProcess(argv []string, dir, logFile string, cred *syscall.Credential) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: cred}

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
			_ = cmd.Wait() // how it ended is in its log; that it ended is in done
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// exited says whether the child is gone.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signalTree stops the parent first, so that it cannot fork behind our back,
// then signals its children and the parent itself. PostgreSQL's backends are
// process groups of their own: a signal to the group would miss them.
func (p *process) signalTree(sig syscall.Signal) error {
	if p.exited() {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", p.pid, err)
	}
	for _, child := range append(childrenOf(p.pid), p.pid) {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %v to process %d: %w", sig, child, err)
		}
	}
	return nil
}

// kill ends the child and its children at once, and waits for the child.
func (p *process) kill() error {
	if err := p.signalTree(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// childrenOf lists the direct children of a process.
func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a constant: no error
	var children []int
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (comm) state ppid ...: comm may hold spaces and parentheses.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			children = append(children, pid)
		}
	}
	return children
}

// run executes a program to its end, as cred if that is not nil.
func run(argv []string, dir string, cred *syscall.Credential) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out))
	}
	return nil
}

// credentialOf is the identity to run a server under that refuses to be root:
// the server's own user, or nobody. It is nil, meaning ourselves, when we are
// not root.
func credentialOf(name string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	var u *user.User
	var err error
	for _, name := range []string{name, "nobody"} {
		if u, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find a user to run the server as: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// lookProgram finds a program in the PATH or where Debian puts servers, which is
// not in an ordinary user's PATH.
func lookProgram(name string, dirs ...string) (string, error) {
	for _, dir := range append(slices.Clone(dirs), "/usr/sbin", "/usr/local/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: run `make test-deps` (Debian, Ubuntu), or install it yourself: %w", name, err)
	}
	return path, nil
}

// tail is the end of a log, short enough for a failure message.
func tail(b []byte) string {
	const most = 2000
	if len(b) > most {
		b = append([]byte("..."), b[len(b)-most:]...)
	}
	return string(b)
}
