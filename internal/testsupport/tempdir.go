package testsupport

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

const dirPrefix = "baton-test-"

// serverDir is the temporary directory of one server. An flock marks it as in
// use, so that what a killed test process left behind can be told and removed.
type serverDir struct {
	path string
	lock *os.File
}

// newServerDir makes a directory below parent, or below a directory that every
// user can reach if parent is empty. Servers that run as a user of their own
// must be able to walk to it.
func newServerDir(parent, name string) (*serverDir, error) {
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
