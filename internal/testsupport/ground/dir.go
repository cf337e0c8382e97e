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

// prefix is short, because the path of a Unix socket has at most 107 bytes, and the name of a test is long.
const prefix = "bt-"

// Dir is a temporary directory that every user can enter, because servers run as users of their own. A Dir in use is locked by flock, so
// that a later process finds and removes the directories of a killed process.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a directory on a disk, below parent. If parent is empty, New uses the system's temporary directory.
func New(parent, name string) (*Dir, error) {
	if parent == "" {
		parent = disk()
		Sweep(parent)
	}
	return newDir(parent, name)
}

// NewInMemory makes a directory in memory if there is enough memory, otherwise on a disk. Files in memory also survive a SIGKILL of a
// server, and servers do not wait for each other's writes. Programs in the directory may not be executable.
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

// Data makes the directory for a server's data, which belongs to the user cred.
func (d *Dir) Data(cred *syscall.Credential) (string, error) { return d.Owned("data", cred) }

// Owned makes a directory that belongs to the user cred. If cred is nil, the directory belongs to the user of this process.
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

// Remove removes the directory. It ignores errors, because a later process removes what is left.
func (d *Dir) Remove() {
	removeSharedMemory(d.Path)
	_ = os.RemoveAll(d.Path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// Sweep removes the directories below parent whose process has ended. It keeps a young directory, because another process may have made it
// and not locked it yet.
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

// disk returns a temporary directory whose path every user may enter.
func disk() string {
	if dir := os.TempDir(); traversable(dir) {
		return dir
	}
	return "/tmp"
}

// memory returns this run's directory in memory, or "" if there is not enough memory. The servers of all tests that run at the same time
// need about one GiB.
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

// traversable reports whether every user may enter dir and the directories above it.
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
