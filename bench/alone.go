package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// alone gives the thread of Redis that serves commands the last core to itself, until back is called. Its other threads, which
// free memory in the background, this process, the nodes that it will start and the database have the others. Where there is one
// core only it does nothing.
func (b *bed) alone() (back func(), err error) {
	all, last, others, err := split()
	if err != nil || last.Count() == 0 {
		return func() {}, err
	}
	set := func(redis, rest *unix.CPUSet) error {
		errs := []error{pin(b.redisPid, rest), unix.SchedSetaffinity(b.redisPid, redis), pin(os.Getpid(), rest)}
		if b.database.pid != 0 {
			errs = append(errs, pinTree(b.database.pid, rest))
		}
		return errors.Join(errs...)
	}
	return func() { _ = set(&all, &all) }, set(&last, &others) // whatever fails there, the next part is only slower
}

// split parts the processors that may be used into the last one and the others. Of a single one none is the last.
func split() (all, last, others unix.CPUSet, err error) {
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return all, last, others, fmt.Errorf("find the processors that may be used: %w", err)
	}
	others = all
	for cpu := 1023; cpu >= 0 && all.Count() > 1; cpu-- { // as many as a set has
		if all.IsSet(cpu) {
			last.Set(cpu)
			others.Clear(cpu)
			break
		}
	}
	return all, last, others, nil
}

// longestStall is for how long the machine stops a loop that has the last core to itself while the others are busy. A host that
// gives its guest less than whole cores does that, and no clock of the guest tells it from a command that takes long.
func longestStall(d time.Duration) (longest time.Duration, err error) {
	_, last, others, err := split()
	if err != nil || last.Count() == 0 {
		return 0, err
	}
	until := time.Now().Add(d)
	var all sync.WaitGroup
	for range others.Count() {
		all.Go(func() { _, _ = spin(until, &others) }) // what it cannot do the next one tells
	}
	all.Go(func() { longest, err = spin(until, &last) })
	all.Wait()
	return longest, err
}

// spin keeps a processor busy. Its thread, which is pinned, ends with its goroutine.
func spin(until time.Time, on *unix.CPUSet) (stall time.Duration, err error) {
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, on); err != nil {
		return 0, fmt.Errorf("pin a thread: %w", err)
	}
	for last := time.Now(); last.Before(until); {
		now := time.Now()
		stall, last = max(stall, now.Sub(last)), now
	}
	return stall, nil
}

// pinTree pins a process and its children.
func pinTree(pid int, cpus *unix.CPUSet) error {
	err := pin(pid, cpus)
	stats, globbed := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		child, wrong := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if wrong != nil {
			continue
		}
		if t, gone := cpuTimes(child); gone == nil && t.parent == pid {
			err = errors.Join(err, pin(child, cpus))
		}
	}
	return errors.Join(err, globbed)
}

// pin lets all threads of a process run on these processors only, and those that they will start.
func pin(pid int, cpus *unix.CPUSet) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	for _, task := range tasks {
		id, wrong := strconv.Atoi(filepath.Base(task))
		if wrong != nil {
			continue
		}
		if wrong = unix.SchedSetaffinity(id, cpus); wrong != nil && !errors.Is(wrong, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("pin process %d: %w", pid, wrong))
		}
	}
	return err
}
