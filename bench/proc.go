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

// cpuSeconds is what this process has used so far, in user and system mode.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // only wrong arguments can fail
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// forgetPeak makes the peak of resident memory start at what is resident now.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakMB and residentMB are the most, and the current, resident memory of a process.
func peakMB(pid int) (float64, error) { return statusMB(pid, "VmHWM:") }

func residentMB(pid int) (float64, error) { return statusMB(pid, "VmRSS:") }

func statusMB(pid int, line string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(b)) {
		if after, ok := strings.CutPrefix(l, line); ok {
			kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, line)
}

// treeCPU is the CPU time in seconds that a process, its children and those that
// have ended and were waited for have used so far.
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
		if t, err := cpuTimes(child); err == nil && t.parent == pid { // else ended meanwhile
			ticks += t.self + t.waited
		}
	}
	const perSecond = 100 // clock ticks; Linux has had no other value since 2.6
	return float64(ticks) / perSecond, nil
}

// cpuTicks are what /proc says of a process.
type cpuTicks struct {
	parent       int
	self, waited int64
}

func cpuTimes(pid int) (t cpuTicks, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	// pid (comm) state ppid ...: comm may hold spaces and parentheses.
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

// machine describes what this runs on.
func machine() string {
	model := "unknown processor"
	cores := 0
	b, _ := os.ReadFile("/proc/cpuinfo") // a description, no more
	for l := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			cores++
		}
	}
	return fmt.Sprintf("%d × %s", cores, model)
}

// load is the load average of the last minute.
func load() float64 {
	b, _ := os.ReadFile("/proc/loadavg") // a description, no more
	one, _, _ := strings.Cut(string(b), " ")
	f, _ := strconv.ParseFloat(one, 64)
	return f
}
