package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// PeakMB returns the peak of a process's resident memory.
func PeakMB(pid int) (float64, error) { return statusMB(pid, "VmHWM:") }

// ResidentMB returns the present resident memory of a process.
func ResidentMB(pid int) (float64, error) { return statusMB(pid, "VmRSS:") }

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

// CPU returns the processor time that another process has used, in nanoseconds. The ticks in /proc are too coarse for programs that sleep
// most of the time.
func CPU(pid int) (time.Duration, error) {
	const perProcess = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Machine returns a description of this machine.
func Machine() string {
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

// Load returns the load average of the last minute.
func Load() float64 {
	b, _ := os.ReadFile("/proc/loadavg") // a description, no more
	one, _, _ := strings.Cut(string(b), " ")
	f, _ := strconv.ParseFloat(one, 64)
	return f
}
