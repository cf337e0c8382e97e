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

// clockSource is compiled for the machine at hand, by the C compiler that the race
// detector needs anyway.
//
//go:embed preload/clock.c
var clockSource []byte

// RedisClock makes the server's wall clock one that StepClock steps.
func RedisClock() RedisOption { return func(o *redisOptions) { o.clock = true } }

// errTrueClock: there is nothing to step.
var errTrueClock = errors.New("this Redis has the machine's clock: start it with RedisClock()")

// steppedClock is a library that a server preloads, and the memory in which the
// library finds how far to step.
type steppedClock struct {
	library, file string
	step          []byte // nanoseconds, shared with the server
}

// clockLibrary is compiled once a process, or once a run of the suite.
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
	// Unmapped when this process ends: a step after Stop must find its memory.
	c.step, err = syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return c, err
}

// wrap is what to put before a command line.
func (c *steppedClock) wrap() []string {
	if c == nil {
		return nil
	}
	return []string{"/usr/bin/env", "LD_PRELOAD=" + c.library, "CLOCK_STEP_FILE=" + c.file}
}

// StepClock sets the server's wall clock to true time plus d, at once: keys expire
// by it, and TIME tells it. The step outlives Restart.
func (r *RedisDaemon) StepClock(d time.Duration) error {
	if r.clock == nil {
		return errTrueClock
	}
	binary.NativeEndian.PutUint64(r.clock.step, uint64(d)) // one store: the server never sees half of it
	return nil
}

// StepClock sets the server's wall clock to true time plus d, at once: keys expire
// by it, and TIME tells it. The step outlives Restart.
func (r *Redis) StepClock(d time.Duration) {
	r.t.Helper()
	r.check("step the clock of", r.daemon.StepClock(d))
}
