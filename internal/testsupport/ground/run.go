package ground

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// These environment variables contain the paths of the directories of a run: one on a disk, and one in memory.
const (
	runEnv    = "BATON_TEST_RUN"
	memoryEnv = "BATON_TEST_MEMORY"
)

// Run contains the directories that all test processes of one run share.
type Run struct{ disk, memory *Dir }

// NewRun makes the directories of a run.
func NewRun() (*Run, error) {
	d, err := New("", "")
	if err != nil {
		return nil, err
	}
	m, err := NewInMemory("")
	if err != nil {
		return nil, d.Fail(err)
	}
	return &Run{disk: d, memory: m}, nil
}

// Env returns the environment variables that the processes of the run need. With these variables the temporary files of the processes are
// in the run's directory.
func (r *Run) Env() []string {
	return []string{"TMPDIR=" + r.disk.Path, runEnv + "=" + r.disk.Path, memoryEnv + "=" + r.memory.Path}
}

// Disk returns the run's directory on a disk.
func (r *Run) Disk() string { return r.disk.Path }

// Remove removes the directories of the run.
func (r *Run) Remove() { r.disk.Remove(); r.memory.Remove() }

// Once returns a directory that all processes of a run share. The first process that asks for the name calls fill; the other processes wait
// until fill returns. Outside of a run, the result ok is false, and fill is not called.
func Once(name string, fill func(dir string) error) (path string, ok bool, err error) {
	run := os.Getenv(runEnv)
	if run == "" {
		return "", false, nil
	}
	path = filepath.Join(run, "shared-"+name)
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", true, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", true, fmt.Errorf("wait for %s: %w", path, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, true, err
	}
	half := path + ".half"
	if err := os.RemoveAll(half); err != nil { // left by a killed process
		return "", true, err
	}
	if err := os.Mkdir(half, 0o755); err != nil {
		return "", true, err
	}
	if err := fill(half); err != nil {
		return "", true, err
	}
	return path, true, os.Rename(half, path)
}
