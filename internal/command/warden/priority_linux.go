package warden

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// These are scheduling policies of the kernel.
const (
	ordinary = 0 // SCHED_OTHER
	realTime = 2 // SCHED_RR
)

const realTimePriority = 14 // RLIMIT_RTPRIO

// limitsProcesses reports whether the settings limit the number of processes. If the command reaches the limit, its processes compete with
// the warden for the processors. Wardens of other commands have no precedence: if many of them kill commands at the same time, the killed
// processes need the processors to end.
func (s Settings) limitsProcesses() bool {
	const ofProcesses = 6 // RLIMIT_NPROC
	for _, l := range s.Limits {
		if l.Resource == ofProcesses {
			return true
		}
	}
	return false
}

// limits returns the limits of the command. The warden of a command with a limited number of processes has a real-time priority, to stop
// the command in time. So the command itself must not be able to take such a priority.
func (s Settings) limits() []Limit {
	if !s.limitsProcesses() {
		return s.Limits
	}
	return append([]Limit{{Resource: realTimePriority, Max: 0}}, s.Limits...)
}

// takePrecedence lets the kernel run the threads of this process before the threads of ordinary processes. It leaves out the first thread,
// because that thread forks the command, and the command inherits its policy. The caller must have locked its goroutine to the first
// thread: then the runtime starts new threads from other threads, and the new threads inherit their policy.
//
// Without the right to a real-time policy the threads keep their policy. They also keep a policy that the operator has chosen for the
// daemon.
func takePrecedence() {
	for again := true; again; { // a thread that was not found may have started a thread
		again = false
		dir, err := os.Open("/proc/self/task")
		if err != nil {
			return
		}
		threads, _ := dir.Readdirnames(-1)
		_ = dir.Close() // the directory was only read
		for _, name := range threads {
			thread, err := strconv.Atoi(name)
			if err != nil || thread == os.Getpid() || !isOrdinary(thread) {
				continue
			}
			if !prefer(thread) {
				return
			}
			again = true
		}
	}
}

// isOrdinary reports whether a thread has the kernel's default policy. It returns false if the thread has ended.
func isOrdinary(thread int) bool {
	policy, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETSCHEDULER, uintptr(thread), 0, 0)
	return errno == 0 && policy == ordinary
}

// prefer gives a thread the lowest real-time priority. It reports whether the kernel allows this.
func prefer(thread int) bool {
	priority := int32(1)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), realTime,
		uintptr(unsafe.Pointer(&priority))) //nolint:gosec // the call's own interface
	return errno == 0 || errors.Is(errno, syscall.ESRCH) // the thread may have ended
}
