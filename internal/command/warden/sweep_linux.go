package warden

import (
	"os"
	"syscall"
)

// thorough is how often a sweep looks at every process there is, since the kernel's
// lists may leave some out: with hundreds of wardens that sweep at the same time that
// would else be all that the machine does.
const thorough = 4

// rounds is how often a sweep looks for new processes before it kills: a command that forks faster than we look must not
// keep us from our orders.
const rounds = 16

// sweeper kills all that is below this process.
type sweeper struct{ sweeps int }

// sweep kills all that it can find. It returns the processes that it killed.
func (s *sweeper) sweep() []int {
	found := s.hold()
	// Children first: the kernel continues those that a stopped parent orphans.
	for i := len(found) - 1; i >= 0; i-- { //nolint:modernize // package slices is not for a process that begins before main
		_ = syscall.Kill(found[i], syscall.SIGKILL) // it may have ended
	}
	return found
}

// hold stops all processes that it finds, until it finds no new one. A killed process leaves room below a limit of processes,
// and the others fork into it at once. A stopped process leaves no room, and it leaves us the processor.
func (s *sweeper) hold() (found []int) {
	s.sweeps++
	held := map[int]bool{}
	for range rounds {
		var ok bool
		found, ok = listed(os.Getpid(), func(pid int) { _ = syscall.Kill(pid, syscall.SIGSTOP) }) // it may have ended
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
