package testsupport

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"baton/internal/testsupport/ground"
)

// clockSource is the C code of a library that steps the clock. The C compiler compiles it at run time; the race detector needs that
// compiler anyway.
//
//go:embed preload/clock.c
var clockSource []byte

// RedisClock gives the server a wall clock that StepClock can step.
func RedisClock() RedisOption { return func(o *redisOptions) { o.clock = true } }

// errTrueClock means that the server was started without a clock that can be stepped.
var errTrueClock = errors.New("this Redis has the machine's clock: start it with RedisClock()")

// steppedClock is a library that a server preloads, and a shared memory that contains the size of the step. The library reads the size from
// that memory.
type steppedClock struct {
	library, file string
	step          []byte // nanoseconds, shared with the server
}

// clockLibrary compiles the library of steppedClock and returns its path. It does so once in a process, or once in a run of the whole
// suite.
var clockLibrary = sync.OnceValues(func() (string, error) {
	dir, shared, err := ground.Once("clock", compileClock)
	if !shared {
		if dir, err = SharedDir("clock"); err == nil {
			err = compileClock(dir)
		}
	}
	return clockIn(dir), err
})

func clockIn(dir string) string { return filepath.Join(dir, "clock.so") }

func compileClock(dir string) error {
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return err
	}
	gcc, err := lookProgram("gcc")
	if err != nil {
		return err
	}
	if err := run([]string{gcc, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", clockIn(dir), source}, dir, nil); err != nil {
		return fmt.Errorf("compile the library that steps a clock: %w", err)
	}
	return nil
}

func newSteppedClock(dir string) (*steppedClock, error) {
	library, err := clockLibrary()
	if err != nil {
		return nil, err
	}
	c := &steppedClock{library: library, file: filepath.Join(dir, "clock.step")}
	if err := os.WriteFile(c.file, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The memory is unmapped only when this process ends, because StepClock may be called after Stop.
	c.step, err = syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return c, err
}

// wrap returns the words to put before the server's command line, so that the server uses the stepped clock.
func (c *steppedClock) wrap() []string {
	if c == nil {
		return nil
	}
	return []string{"/usr/bin/env", "LD_PRELOAD=" + c.library, "CLOCK_STEP_FILE=" + c.file}
}

// StepClock sets the server's wall clock to the true time plus d. The expiry of keys and the command TIME use that clock. The step remains
// after a Restart.
func (r *RedisDaemon) StepClock(d time.Duration) error {
	if r.clock == nil {
		return errTrueClock
	}
	binary.NativeEndian.PutUint64(r.clock.step, uint64(d)) // one store, so that the server never reads half of the value
	return nil
}

// StepClock sets the server's wall clock to the true time plus d. The expiry of keys and the command TIME use that clock. The step remains
// after a Restart.
func (r *Redis) StepClock(d time.Duration) {
	r.t.Helper()
	r.check("step the clock of", r.daemon.StepClock(d))
}
