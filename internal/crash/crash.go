// Package crash releases the lock of a daemon that has crashed: a leader notes its lock in a
// lease file of its host, and the program that systemd runs after the daemon reads it there.
package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
)

// killWithin bounds the wait for killed processes to be gone.
const killWithin = 5 * time.Second

// ReleaseLeft runs when the daemon's process is gone, however it ended: systemd starts it
// by ExecStopPost=. First it kills every other process of its own control group: systemd
// does not promise that they are dead by then, and a job that lives on must not meet the
// next leader's. Then it releases the locks that the lease files name. Without lease files
// the node did not lead, and the result is empty. It calls load only if there are lease
// files; [config.ReadLock] reads enough of the configuration.
func ReleaseLeft(ctx context.Context, load func() (config.Config, error), getenv func(string) (string, bool)) ([]Released, error) {
	// Outside a service the control group is the user's own session.
	if _, service := getenv("SERVICE_RESULT"); !service {
		return nil, errors.New("release --crashed kills every process of its control group, so it runs only as ExecStopPost= " +
			"of a systemd service ($SERVICE_RESULT is not set); to release a lock by hand: baton release --owner UUID")
	}
	path, ok := LeasePath(getenv)
	if !ok {
		return nil, errors.New("$RUNTIME_DIRECTORY is not set: the unit needs RuntimeDirectory=")
	}
	if err := killOthers(ctx); err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(leasePaths(path), func(file string) bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	})
	if len(left) == 0 {
		return nil, nil
	}
	c, err := load()
	if err != nil {
		return nil, fmt.Errorf("the lock that the daemon left behind is not released and expires with its lease, "+
			"because the configuration does not say where it is:\n%w", err)
	}
	var released []Released
	var failed error
	for _, file := range left {
		r, err := releaseFile(ctx, c, file)
		if r != nil {
			released = append(released, *r)
		}
		failed = errors.Join(failed, err)
	}
	return released, failed
}

// releaseFile releases the lock of a lease file; nil if there is no such file.
func releaseFile(ctx context.Context, c config.Config, path string) (*Released, error) {
	l, found, err := ReadLease(path)
	if err != nil || !found {
		return nil, err
	}
	c.Election.LockKey = l.LockKey
	var r Released
	if err := site.WithLock(ctx, c, func(ctx context.Context, e site.Election, lock site.NodeLock) (err error) {
		r, err = giveUp(ctx, e, lock, l.Owner, "", elector.CodeCrashed)
		return errors.Join(err, lock.Leave(ctx)) // unlike by hand: it is this node that is gone
	}); err != nil {
		return nil, err
	}
	r.LockKey = l.LockKey
	return &r, RemoveLease(path)
}

// Env is the environment for what runs after the daemon. systemd 252 hides a
// service's credentials from ExecStopPost=, though it names their directory: the unit
// mounts them a second time, in the runtime directory.
func Env(getenv func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := getenv(name)
		if name != "CREDENTIALS_DIRECTORY" || !ok {
			return value, ok
		}
		dirs, _ := getenv("RUNTIME_DIRECTORY")
		dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
		again := filepath.Join(dir, "credentials")
		if _, err := os.ReadDir(value); err == nil || dir == "" {
			return value, true
		}
		if _, err := os.ReadDir(again); err != nil {
			return value, true
		}
		return again, true
	}
}

// killOthers kills every process of this one's control group but itself, and
// waits until they are gone.
func killOthers(ctx context.Context) error {
	group, err := ownCgroup()
	if err != nil {
		return err
	}
	return killGroup(ctx, group)
}

// killGroup is killOthers for a named group.
func killGroup(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, killWithin)
	defer cancel()
	for {
		pids, err := processes(group)
		if err != nil {
			return err
		}
		left, refused := killAll(pids)
		if left == 0 {
			if refused != nil {
				return fmt.Errorf("%w, left over in %s; the lock is not released and expires with its lease", refused, group)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes in %s do not die; the lock is not released and expires with its lease", left, group)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// killAll kills all but this process, and counts those that may still be dying. If it may
// not kill one of them, it still kills the others.
func killAll(pids []int) (left int, refused error) {
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if pid <= 0 { // of another process namespace; kill(2) takes 0 for our own group
			refused = errors.New("a process of another process namespace cannot be killed")
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			left++
		} else if !errors.Is(err, syscall.ESRCH) {
			refused = fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return left, refused
}

// ownCgroup finds the folder of this process' control group: of the unified
// hierarchy, or of systemd's own where that is all there is.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find the control group: %w", err)
	}
	paths, err := serviceGroups(string(text))
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
			if dir := filepath.Join(mount, path); holdsSelf(dir) {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("control group %s is not mounted under /sys/fs/cgroup", paths[0])
}

// serviceGroups finds in /proc/self/cgroup the paths that are a systemd service's
// own. Any other group holds processes that are not ours to kill: a session's, or
// in the root group every one of the machine.
func serviceGroups(text string) ([]string, error) {
	var paths []string
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (parts[1] == "" || parts[1] == "name=systemd") && strings.HasSuffix(parts[2], ".service") {
			paths = append(paths, parts[2])
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("this process is in no systemd service's control group, "+
			"so nothing was killed and the lock expires with its lease (/proc/self/cgroup: %s)",
			strings.Join(strings.Fields(text), " "))
	}
	return paths, nil
}

func holdsSelf(dir string) bool {
	pids, err := processes(dir)
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if pid == os.Getpid() {
			return true
		}
	}
	return false
}

// processes lists the processes of a control group and of those below it.
func processes(group string) ([]int, error) {
	var pids []int
	tree := os.DirFS(group)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return gone(path, err)
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return gone(path, err)
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the processes of control group %s: %w", group, err)
	}
	return pids, nil
}

// gone forgives that a group below the first has vanished while it was listed.
func gone(path string, err error) error {
	if path != "." && path != "cgroup.procs" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)) {
		return nil
	}
	return err
}
