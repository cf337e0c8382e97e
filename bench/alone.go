package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// alone gives Redis the last core to itself: this process, the nodes that it will start and the database
// have the others, until back is called. Where there is one core only it does nothing.
func (b *bed) alone() (back func(), err error) {
	var all, last, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("find the processors that may be used: %w", err)
	}
	if all.Count() < 2 {
		return func() {}, nil
	}
	others = all
	for cpu := 1023; cpu >= 0; cpu-- { // as many as a set has
		if all.IsSet(cpu) {
			last.Set(cpu)
			others.Clear(cpu)
			break
		}
	}
	set := func(redis, rest *unix.CPUSet) error {
		errs := []error{pin(b.redisPid, redis), pin(os.Getpid(), rest)}
		if b.database.pid != 0 {
			errs = append(errs, pinTree(b.database.pid, rest))
		}
		return errors.Join(errs...)
	}
	return func() { _ = set(&all, &all) }, set(&last, &others) // whatever fails there, the next part is only slower
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
