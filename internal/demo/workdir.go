package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const dirPrefix = "baton-demo-"

// workDir is the directory of one run: configuration, logs, the SQLite file. While a run uses its directory, it locks the directory by
// flock. So the next run recognises the directories of killed runs, because these are not locked.
type workDir struct {
	path string
	lock *os.File
}

func newWorkDir(parent string) (*workDir, error) {
	sweep(parent)
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for the demo: %w", err)
	}
	d := &workDir{path: path}
	if d.lock, err = os.Create(filepath.Join(path, "lock")); err == nil {
		err = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		d.remove()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return d, nil
}

// remove removes the directory. It ignores errors, because a later run removes the rest of the directory.
func (d *workDir) remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// keep prevents later runs from removing the directory.
func (d *workDir) keep() {
	_ = os.Remove(d.lock.Name()) // sweep removes only directories that contain a lock
	_ = d.lock.Close()
}

// sweep removes the directories of runs that were killed.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*", "lock"))
	for _, name := range locks {
		lock, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = lock.Close()
	}
}
