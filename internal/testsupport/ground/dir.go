package testsupport

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const dirPrefix = "baton-test-"

// serverDir is the temporary directory of one server. An flock marks it as in
// use, so that what a killed test process left behind can be told and removed.
type serverDir struct {
	path string
	lock *os.File
}

// newServerDir makes a directory below parent, or if that is empty below one that every
// user can reach: servers that run as a user of their own must be able to walk to it. The
// servers of tests have it in memory, if there is enough: it survives a SIGKILL, as a
// disk does, and what one of them writes down makes no other wait.
func newServerDir(parent, name string) (*serverDir, error) {
	if parent == "" && testing.Testing() && memoryHasRoom() {
		sweep(memory)
		parent = memory
	}
	return newLockedDir(parent, name)
}

// newLockedDir is newServerDir for what has to lie on a disk, or to be executed.
func newLockedDir(parent, name string) (*serverDir, error) {
	if parent == "" {
		parent = os.TempDir()
		if !traversable(parent) {
			parent = "/tmp"
		}
		sweep(parent)
	}
	path, err := os.MkdirTemp(parent, dirPrefix+name+"-")
	if err != nil {
		return nil, err
	}
	d := &serverDir{path: path}
	if err := os.Chmod(path, 0o755); err != nil {
		return nil, d.fail(err)
	}
	if d.lock, err = os.Create(filepath.Join(path, "lock")); err != nil {
		return nil, d.fail(err)
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, d.fail(fmt.Errorf("lock %s: %w", path, err))
	}
	return d, nil
}

// memory is a file system that lies in memory, on most systems.
const memory = "/dev/shm"

// memoryHasRoom reports whether all servers of tests that run at a time have room there.
func memoryHasRoom() bool {
	const enough = 6 << 30 // they take about one
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < enough {
		return false
	}
	text, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	fields := strings.Fields(rest)
	if len(fields) == 0 || !traversable(memory) {
		return false
	}
	kib, err := strconv.ParseUint(fields[0], 10, 64)
	return err == nil && kib<<10 >= enough
}

func (d *serverDir) fail(err error) error {
	d.remove()
	return err
}

// data makes the directory of what the server keeps.
func (d *serverDir) data(cred *syscall.Credential) (string, error) { return d.owned("data", cred) }

// owned makes a directory that the server itself owns.
func (d *serverDir) owned(name string, cred *syscall.Credential) (string, error) {
	path := filepath.Join(d.path, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	if cred != nil {
		if err := os.Chown(path, int(cred.Uid), int(cred.Gid)); err != nil {
			return "", err
		}
	}
	return path, nil
}

// remove is best effort: what stays is swept by a later test process.
func (d *serverDir) remove() {
	removeSharedMemory(filepath.Join(d.path, "data"))
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// sweep removes directories whose process is gone. The age keeps it away from
// one that another process has made but not locked yet.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range dirs {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.Open(filepath.Join(path, "lock"))
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			(&serverDir{path: path}).remove()
		}
		_ = lock.Close()
	}
}

// removeSharedMemory removes the System V segment that a PostgreSQL killed by
// force leaves behind: a machine has only so many of them.
func removeSharedMemory(dataDir string) {
	id, ok := sharedMemory(dataDir)
	if !ok {
		return
	}
	var stat unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &stat); err == nil && stat.Nattch == 0 {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}

// sharedMemory is the id of the segment that a PostgreSQL noted in its lock file,
// which it removes when it ends in order.
func sharedMemory(dataDir string) (id int, ok bool) {
	b, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 {
		return 0, false
	}
	key := strings.Fields(lines[6]) // key and id
	if len(key) != 2 {
		return 0, false
	}
	id, err = strconv.Atoi(key[1])
	return id, err == nil
}

// traversable says whether every user can walk to dir.
func traversable(dir string) bool {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == "/" || dir == "." {
			return true
		}
	}
}
