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

// startProcess runs argv in dir and appends its output to logFile. The process runs as the user cred, if cred is set.
func startProcess(argv []string, dir, logFile string, cred *syscall.Credential) (*child.Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	return child.StartLogged(cmd, logFile)
}

// signalTree stops the parent, so that it cannot fork, and then signals the children and the parent. A signal to the process group would
// not reach PostgreSQL's backends, because each backend has its own process group.
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

// killTree kills a process and its children, and waits for the process.
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
		return nil // most processes are childless, and reading the stat file of every process is slow
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a constant, so Glob returns no error
	var children []int
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended since Glob
		}
		// A line is "pid (comm) state ppid ...", and comm may contain spaces and parentheses.
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

// childless returns true if the kernel lists no child for any thread of a process. While a child ends, the kernel's list may lack another
// child, but an empty list is reliable.
func childless(parent int) bool {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/children", parent))
	for _, name := range lists {
		if b, err := os.ReadFile(name); err != nil || len(b) > 0 {
			return false
		}
	}
	return len(lists) > 0 // false if the kernel has no such lists
}

// run runs a program and waits for its end. The program runs as the user cred, if cred is set.
func run(argv []string, dir string, cred *syscall.Credential) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out))
	}
	return nil
}

// credentialOf returns the identity for a server that refuses to run as root: the server's own user or, if there is none, an unprivileged
// user. It returns nil if this process is not root; the server then runs as the user of this process.
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

// lookProgram finds a program in the given directories, in the directories where Debian installs servers, or in the PATH. The PATH of an
// ordinary user does not contain the directories of servers.
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

// tail returns the end of a log, short enough for a failure message.
func tail(b []byte) string {
	const most = 2000
	if len(b) > most {
		b = append([]byte("..."), b[len(b)-most:]...)
	}
	return string(b)
}
