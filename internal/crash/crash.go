// Package crash releases the lock of a daemon that has crashed, so that another node takes over at once instead of after the lease.
//
//	leader       writes its lock key and owner into a lease file of its host, and removes the file at the end of the term
//	systemd      runs baton release --crashed after the daemon's end (ExecStopPost=)
//	ReleaseLeft  kills all other processes of the service, reads the lease files, and releases their locks
//
// The invariants:
//
//   - No lock is released while a process of the service may live, because a surviving job would run at the same time as the next leader's
//     job. So the processes are killed first, and if one of them does not die, the lock is not released.
//   - Only processes of the service's own control group are killed. Outside of a systemd service no process is killed.
//   - The release compares the owner. If the lock has passed to another term, the lock is not released.
//
// Failures: if there is no lease file, the node did not lead, and there is nothing to release. After any other error the lock stays until
// its lease ends, and the error says why.
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

// killWithin limits the wait until killed processes have ended.
const killWithin = 5 * time.Second

// ReleaseLeft runs after the daemon's process has ended, for any reason, because systemd starts it by ExecStopPost=. First it kills every
// other process of its own control group, because systemd does not guarantee that these processes are dead. A surviving job must not run at
// the same time as the next leader's job. Then it releases the locks that the lease files name. If there are no lease files, the node did
// not lead, and the result is empty. ReleaseLeft calls the function load only if there are lease files; [config.ReadLock] reads enough of
// the configuration.
func ReleaseLeft(ctx context.Context, load func() (config.Config, error), getenv func(string) (string, bool)) ([]Released, error) {
	// Outside of a service the control group may be that of the user's own session.
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

// releaseFile releases the lock of a lease file. It returns nil if the file does not exist.
func releaseFile(ctx context.Context, c config.Config, path string) (*Released, error) {
	l, found, err := ReadLease(path)
	if err != nil || !found {
		return nil, err
	}
	c.Election.LockKey = l.LockKey
	var r Released
	if err := site.WithLock(ctx, c, func(ctx context.Context, e site.Election, lock site.NodeLock) (err error) {
		r, err = giveUp(ctx, e, lock, l.Owner, "", elector.CodeCrashed)
		return errors.Join(err, lock.Leave(ctx)) // unlike in a release by hand, because this node itself has ended
	}); err != nil {
		return nil, err
	}
	r.LockKey = l.LockKey
	return &r, RemoveLease(path)
}

// Env returns the environment for commands that run after the daemon. systemd 252 hides a service's credentials from ExecStopPost=,
// although the environment still names their directory. Therefore the unit mounts the credentials a second time, in the runtime directory.
func Env(getenv func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := getenv(name)
		if name != "CREDENTIALS_DIRECTORY" || !ok {
			return value, ok
		}
		dirs, _ := getenv("RUNTIME_DIRECTORY")
		dir, _, _ := strings.Cut(dirs, ":") // a unit may have several directories
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

// killOthers kills every process of this process's control group except itself, and waits until they have ended.
func killOthers(ctx context.Context) error {
	group, err := ownCgroup()
	if err != nil {
		return err
	}
	return killGroup(ctx, group)
}

// killGroup is like killOthers for the given control group.
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
				return fmt.Errorf("%w, and one is still in %s; the lock is not released and expires with its lease", refused, group)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes in %s did not end after SIGKILL; the lock is not released and expires with "+
				"its lease", left, group)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// killAll kills the processes pids except this one, and returns the number of processes that may not have ended yet. If it may not kill one
// process, it still kills the others.
func killAll(pids []int) (left int, refused error) {
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if pid <= 0 { // the process is in another namespace; 0 would mean our own process group to kill(2)
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

// ownCgroup returns the directory of this process' control group in the unified hierarchy, or in systemd's own hierarchy if there is no
// unified one.
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

// serviceGroups returns the paths in /proc/self/cgroup that belong to a systemd service. Any other group may contain processes that must
// not be killed: the processes of a session, or in the root group every process of the machine.
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

// processes returns the processes of a control group and of the groups below it.
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

// gone returns nil if err says that a group below the listed group has vanished while it was listed. Otherwise it returns err.
func gone(path string, err error) error {
	if path != "." && path != "cgroup.procs" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)) {
		return nil
	}
	return err
}
