package ground

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is short: the path of a Unix socket has 107 bytes, and the name of a test is long.
const prefix = "bt-"

// Dir is a temporary directory that every user can walk to: servers run as users of their
// own. An flock marks it as in use, so that a later process finds and removes what a killed
// one left behind.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a directory on a disk, below parent or, if that is empty, below the system's
// temporary directory.
func New(parent, name string) (*Dir, error) {
	if parent == "" {
		parent = disk()
		Sweep(parent)
	}
	return newDir(parent, name)
}

// NewInMemory makes a directory in memory if there is room, else on a disk. Memory survives a
// SIGKILL as a disk does, and what one server writes makes no other wait. Memory may forbid
// the execution of programs.
func NewInMemory(name string) (*Dir, error) {
	parent := memory()
	if parent == "" {
		return New("", name)
	}
	Sweep(parent)
	return newDir(parent, name)
}

func newDir(parent, name string) (*Dir, error) {
	path, err := os.MkdirTemp(parent, prefix+name)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path}
	if err := os.Chmod(path, 0o755); err != nil {
		return nil, d.Fail(err)
	}
	if d.lock, err = os.Create(filepath.Join(path, "lock")); err != nil {
		return nil, d.Fail(err)
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, d.Fail(fmt.Errorf("lock %s: %w", path, err))
	}
	return d, nil
}

// Fail removes the directory and returns err.
func (d *Dir) Fail(err error) error {
	d.Remove()
	return err
}

// Data makes the directory of what a server keeps, and gives it to cred.
func (d *Dir) Data(cred *syscall.Credential) (string, error) { return d.Owned("data", cred) }

// Owned makes a directory that belongs to cred, or to this process if that is nil.
func (d *Dir) Owned(name string, cred *syscall.Credential) (string, error) {
	path := filepath.Join(d.Path, name)
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

// Remove is best effort: a later process sweeps what stays.
func (d *Dir) Remove() {
	removeSharedMemory(d.Path)
	_ = os.RemoveAll(d.Path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// Sweep removes the directories below parent whose process is gone. The age protects one
// that another process has made and not yet locked.
func Sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
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
			(&Dir{Path: path}).Remove()
		}
		_ = lock.Close()
	}
}

// disk is a temporary directory that every user can walk to.
func disk() string {
	if dir := os.TempDir(); traversable(dir) {
		return dir
	}
	return "/tmp"
}

// memory is the directory in memory of this run, or "" if there is no room: all servers of
// tests that run at a time take about one GiB.
func memory() string {
	const enough = 6 << 30
	parent := os.Getenv(memoryEnv)
	if parent == "" {
		parent = "/dev/shm"
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(parent, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < enough {
		return ""
	}
	text, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	fields := strings.Fields(rest)
	if len(fields) == 0 || !traversable(parent) {
		return ""
	}
	if kib, err := strconv.ParseUint(fields[0], 10, 64); err != nil || kib<<10 < enough {
		return ""
	}
	return parent
}

// traversable reports whether every user can walk to dir.
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
