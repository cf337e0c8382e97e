package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// cpuSeconds returns the CPU time that this process has used so far, in user mode and system mode.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // only wrong arguments can fail
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// forgetPeak resets the peak of resident memory to the present value.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// treeCPU returns the CPU time in seconds that a process and its children have used so far. It includes ended children that were waited
// for.
func treeCPU(pid int) (float64, error) {
	own, err := cpuTimes(pid)
	if err != nil {
		return 0, err
	}
	ticks := own.self + own.waited
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, name := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		if t, err := cpuTimes(child); err == nil && t.parent == pid { // otherwise the child has ended in the meantime
			ticks += t.self + t.waited
		}
	}
	return float64(ticks) / ticksPerSecond, nil
}

// ticksPerSecond is the number of clock ticks per second. Linux has had no other value since 2.6.
const ticksPerSecond = 100

// cpuTicks contains the times of a process in /proc.
type cpuTicks struct {
	parent       int
	self, waited int64
}

// seconds returns the CPU time of the process itself.
func (t cpuTicks) seconds() float64 { return float64(t.self) / ticksPerSecond }

func cpuTimes(pid int) (t cpuTicks, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	// The format is: pid (comm) state ppid ... The comm may contain spaces and parentheses.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 15 {
		return t, fmt.Errorf("/proc/%d/stat is short", pid)
	}
	var n [15]int64
	for i := 1; i < len(n); i++ {
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return t, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return cpuTicks{parent: int(n[1]), self: n[11] + n[12], waited: n[13] + n[14]}, nil
}
