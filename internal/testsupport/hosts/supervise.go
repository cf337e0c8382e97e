package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// prefix begins the name of whatever is made outside the namespaces; the number of
// the process that has to remove it follows.
const prefix = "baton-hosts-"

// base is what the first process hands to the second.
type base struct {
	Root   string // the root file system
	Dir    string // an empty directory: the second mounts its memory there
	Cgroup string // a control group of version 2, for the hosts
}

// supervise runs the tests in new namespaces, waits, and cleans up.
func supervise(lab string) (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("it takes root, to make namespaces and mounts: `make test-systemd` asks sudo")
	}
	b := &base{}
	if b.Root, err = filepath.Abs(filepath.Join(lab, "base")); err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(b.Root, "lib/systemd/systemd")); err != nil {
		return 0, fmt.Errorf("no root file system with systemd (scripts/test-rootfs makes one): %w", err)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return 0, fmt.Errorf("cables are made of it; modprobe tun, and a container has to be given the device: %w", err)
	}
	groups, err := unifiedMount()
	if err != nil {
		return 0, err
	}
	sweep(os.TempDir(), os.Remove)
	sweep(groups, removeGroup)
	name := prefix + strconv.Itoa(os.Getpid())
	b.Dir, b.Cgroup = filepath.Join(os.TempDir(), name), filepath.Join(groups, name)
	defer func() { err = errors.Join(err, forget(b)) }()
	for _, dir := range []string{b.Dir, b.Cgroup} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return 0, fmt.Errorf("%w (the tests of hosts need to write there)", err)
		}
	}
	return runTests(b)
}

// forget removes what supervise has made outside of the namespaces.
func forget(b *base) error {
	if err := os.Remove(b.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeGroup(b.Cgroup) // one that is not there is removed
}

// runTests starts this program again and waits for it. An interrupt ends it first.
func runTests(b *base) (int, error) {
	spec, err := json.Marshal(b)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envStage+"="+stageTests, envSpec+"="+string(spec), "TMPDIR="+b.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	select {
	case err = <-ended:
	case sig := <-signals:
		// PID 1 of a namespace dies with everything in it.
		_ = cmd.Process.Kill()
		return 0, fmt.Errorf("ended by %v (%w); every host is gone", sig, <-ended)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// sweep removes what a run has left behind that was killed.
func sweep(dir string, remove func(string) error) {
	names, _ := filepath.Glob(filepath.Join(dir, prefix+"[0-9]*"))
	for _, name := range names {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), prefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = remove(name) // the next run tries again
		}
	}
}
