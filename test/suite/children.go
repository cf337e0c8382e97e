package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant whose own parent has ended, so that endChildren finds the processes that a
// killed test leaves behind.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphaned processes: %w", err)
	}
	return nil
}

// endChildren kills every descendant except spare and the descendants of spare. It repeats this until none is left, because the children of
// a killed process become orphans, and a process may fork at that moment.
func endChildren(spare int) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left := descendants(os.Getpid(), spare)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}
}

// reap waits for adopted processes that have ended, like init. Otherwise a process that checks by a signal whether one of them lives would
// find a zombie alive. reap skips the processes in own, because other code waits for them.
func reap(own []int) {
	lists, _ := filepath.Glob("/proc/self/task/[0-9]*/children") // the pattern is a constant, so Glob returns no error
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		for field := range bytes.FieldsSeq(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil && !slices.Contains(own, pid) {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // WNOHANG, because the process may still run
			}
		}
	}
}

// descendants returns the living descendants of a process, except spare and the descendants of spare.
func descendants(of, spare int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a constant, so Glob returns no error
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended since Glob
		}
		// A line is "pid (comm) state ppid ...", and comm may contain spaces and parentheses.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if len(fields) < 2 || string(fields[0]) == "Z" || pid == spare {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var all []int
	for next := children[of]; len(next) > 0; {
		pid := next[0]
		all, next = append(all, pid), append(next[1:], children[pid]...)
	}
	return all
}

// childCPU returns the processor time of all descendants whose end was waited for.
func childCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
