package main

import (
	"fmt"
	"os"
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
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
