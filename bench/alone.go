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

// alone reserves the last core for the thread of Redis that serves commands, until back is called. The other cores are for Redis' other
// threads, which free memory in the background, for this process, for the nodes that this process will start, and for the database. If
// there is only one core, alone does nothing.
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
	return func() { _ = set(&all, &all) }, set(&last, &others) // if it fails, the next part is only slower
}

// split divides the usable processors into the last processor and the others. If there is only one processor, last is empty.
func split() (all, last, others unix.CPUSet, err error) {
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return all, last, others, fmt.Errorf("find the processors that may be used: %w", err)
	}
	others = all
	for cpu := 1023; cpu >= 0 && all.Count() > 1; cpu-- { // the highest number that a set can have
		if all.IsSet(cpu) {
			last.Set(cpu)
			others.Clear(cpu)
			break
		}
	}
	return all, last, others, nil
}

// stall returns the longest time for which a loop on the last core stood still while the other cores were busy. It returns 0 if there is
// only one core. Another process may have used the core, or the host may have stopped its guest. The slow log counts such time as time of
// the command.
func stall(d time.Duration) (longest time.Duration, err error) {
	_, last, others, err := split()
	if err != nil || last.Count() == 0 {
		return 0, err
	}
	// Otherwise Go's own scheduler may stop the loop: it has a thread for each core that this process may use, and uses an old count of
	// them.
	runtime.GOMAXPROCS(others.Count() + 2)
	defer runtime.SetDefaultGOMAXPROCS()
	until := time.Now().Add(d)
	failed := make([]error, others.Count()+1)
	var loops sync.WaitGroup
	for i := range others.Count() {
		loops.Go(func() { _, failed[i] = spin(until, &others) })
	}
	loops.Go(func() { longest, failed[others.Count()] = spin(until, &last) })
	loops.Wait()
	return longest, errors.Join(failed...)
}

// spin keeps a processor busy, and returns the longest time for which the loop stood still. The loop's thread is pinned, and never
// reused.
func spin(until time.Time, on *unix.CPUSet) (longest time.Duration, err error) {
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, on); err != nil {
		return 0, fmt.Errorf("pin a thread: %w", err)
	}
	for before := time.Now(); before.Before(until); {
		now := time.Now()
		longest, before = max(longest, now.Sub(before)), now
	}
	return longest, nil
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

// pin lets all threads of a process, and all threads that they will start, run only on these processors.
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
