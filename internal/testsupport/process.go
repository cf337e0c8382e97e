package testsupport

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"baton/internal/testsupport/child"
)

// startProcess runs argv in dir with its output appended to logFile, as cred if
// that is not nil.
func startProcess(argv []string, dir, logFile string, cred *syscall.Credential) (*child.Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	return child.StartLogged(cmd, logFile)
}

// signalTree stops the parent first, so that it cannot fork behind our back,
// then signals its children and the parent itself. PostgreSQL's backends are
// process groups of their own: a signal to the group would miss them.
func signalTree(p *child.Process, sig syscall.Signal) error {
	if p.Exited() {
		return nil
	}
	if err := p.Freeze(); err != nil {
		return err
	}
	for _, pid := range append(childrenOf(p.Pid()), p.Pid()) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %v to process %d: %w", sig, pid, err)
		}
		if sig == syscall.SIGSTOP {
			child.AwaitStopped(pid)
		}
	}
	return nil
}

// killTree ends a process and its children at once, and waits for the process.
func killTree(p *child.Process) error {
	if err := signalTree(p, syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

// childrenOf lists the direct children of a process.
func childrenOf(parent int) []int {
	if childless(parent) {
		return nil // most are, and reading what all processes say of themselves is slow
	}
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

// childless is true if the kernel says that no thread of a process has a child. Where
// there are some its list may lack one while another ends; an empty list lacks none.
func childless(parent int) bool {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/children", parent))
	for _, name := range lists {
		if b, err := os.ReadFile(name); err != nil || len(b) > 0 {
			return false
		}
	}
	return len(lists) > 0 // else a kernel without such lists
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
