package ground

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The environment of a run: its directories on a disk and in memory.
const (
	runEnv    = "BATON_TEST_RUN"
	memoryEnv = "BATON_TEST_MEMORY"
)

// Run is the ground of all test processes of one run.
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

// Env is what the processes of the run need in their environment. All that they leave in a
// temporary directory is in the run's.
func (r *Run) Env() []string {
	return []string{"TMPDIR=" + r.disk.Path, runEnv + "=" + r.disk.Path, memoryEnv + "=" + r.memory.Path}
}

// Disk is the run's directory on a disk.
func (r *Run) Disk() string { return r.disk.Path }

// Remove removes the ground with all that is in it.
func (r *Run) Remove() { r.disk.Remove(); r.memory.Remove() }

// Once returns a directory that all processes of a run share. The first that asks for the
// name fills it; the others wait for that. Outside a run there is none: ok is false.
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
	if err := os.RemoveAll(half); err != nil { // of one that was killed
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
