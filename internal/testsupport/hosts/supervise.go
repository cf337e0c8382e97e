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

// prefix begins the name of each object that is made outside of the namespaces. After the prefix the name contains the id of the process
// that must remove the object.
const prefix = "baton-hosts-"

// base contains the data that the first process passes to the second process, which runs the tests.
type base struct {
	Root   string // the root file system
	Dir    string // an empty directory where the second process mounts its memory
	Cgroup string // a control group of version 2, for the hosts
}

// supervise runs the tests in new namespaces, waits for their end, and cleans up.
func supervise(lab string) (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("root is required to create namespaces and mounts: run `make test-systemd`, which uses sudo")
	}
	b := &base{}
	if b.Root, err = filepath.Abs(filepath.Join(lab, "base")); err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(b.Root, "lib/systemd/systemd")); err != nil {
		return 0, fmt.Errorf("no root file system with systemd (scripts/test-rootfs makes one): %w", err)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return 0, fmt.Errorf("the virtual network needs /dev/net/tun: run modprobe tun; in a container, give it that device: %w", err)
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

// forget removes the files that supervise has made outside the namespaces.
func forget(b *base) error {
	if err := os.Remove(b.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeGroup(b.Cgroup) // returns nil if the group does not exist
}

// runTests starts this program again and waits for its end. If this process is interrupted, it ends that program first.
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
		// The kernel sends Pdeathsig when the thread that forked ends, not when the process ends.
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
		// When PID 1 of a namespace ends, the kernel ends every process in the namespace.
		_ = cmd.Process.Kill()
		return 0, fmt.Errorf("ended by %v (%w); every host is gone", sig, <-ended)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// sweep removes the remains of killed runs in dir, by calls of the function remove.
func sweep(dir string, remove func(string) error) {
	names, _ := filepath.Glob(filepath.Join(dir, prefix+"[0-9]*"))
	for _, name := range names {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), prefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = remove(name) // the next run tries again
		}
	}
}
