package warden

import (
	"os"
	"syscall"
)

// thorough means that every thorough-th sweep checks every process of the machine, because the kernel's lists of children may leave out
// processes. If all sweeps did this, hundreds of wardens that sweep at the same time would use the whole machine.
const thorough = 4

// rounds limits how often a sweep looks for new processes before it kills. A command that forks faster than the sweep looks must not
// keep the warden from reading its orders.
const rounds = 16

// sweeper kills all processes below this process.
type sweeper struct{ sweeps int }

// sweep kills all processes that it can find, and returns their process IDs.
func (s *sweeper) sweep() []int {
	found := s.hold()
	// Children are killed first, because the kernel continues the stopped children of a process that dies.
	for i := len(found) - 1; i >= 0; i-- { //nolint:modernize // package slices is not for a process that begins before main
		_ = syscall.Kill(found[i], syscall.SIGKILL) // the process may have ended
	}
	return found
}

// hold stops all processes that it finds, until it finds no new one. If a limit of processes is reached, each killed process makes room
// for a new process, which the other processes fork at once. A stopped process makes no room, and does not use the processor.
func (s *sweeper) hold() (found []int) {
	s.sweeps++
	held := map[int]bool{}
	for range rounds {
		var ok bool
		found, ok = listed(os.Getpid(), func(pid int) { _ = syscall.Kill(pid, syscall.SIGSTOP) }) // the process may have ended
		if !ok || s.sweeps%thorough == 0 {
			found = descendants(os.Getpid())
			signalEach(found, syscall.SIGSTOP)
		}
		fresh := false
		for _, pid := range found {
			fresh = fresh || !held[pid]
			held[pid] = true
		}
		if !fresh {
			break
		}
	}
	return found
}
