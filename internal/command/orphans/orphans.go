// Package orphans takes care of the orphans that the kernel gives to a daemon that is PID 1, as in a container without an init. It
// reaps the orphans that have ended, and kills the orphans that a command has left.
//
// # Why PID 1 only
//
// Usually the guard and the warden of a command adopt its orphans, see package command. If both were killed, for example because memory
// ran out, the next reaper is PID 1. An init reaps the orphans, and systemd ends the remaining processes with the service. In a
// container without an init PID 1 is baton: zombies would fill the process table, and a process that has left its group would outlive
// its run.
//
// # How orphans are recognised
//
// A process that reaps all of its children also consumes the exit status of the children that os/exec waits for. So all children of the
// daemon are started by [Start] or [Run], and all other children are orphans. The kernel does not reuse the process ID of an orphan
// before this package has reaped the orphan.
//
// An orphan belongs to a command if its environment names a run. Other orphans, such as the orphans of an operator's shell in the
// container, live on.
//
// # Orphans that are not ended
//
// An orphan of a command lives on if the command has cleared the orphan's environment, or if baton may not read that environment. To read
// the environment of another user's process baton needs CAP_SYS_PTRACE.
package orphans

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
)

// children are the processes that this process waits for.
type children struct {
	starting sync.RWMutex // held from the start of a child until the child is known

	mu    sync.Mutex
	known map[int]*exec.Cmd // by process ID
}

var own = children{known: map[int]*exec.Cmd{}} //nolint:gochecknoglobals // the children of a process are global, too

// adopting reports whether this process gets orphans, and whether /proc belongs to its own PID namespace. The /proc of another namespace
// has other process IDs.
func adopting() bool {
	if os.Getpid() != 1 {
		return false
	}
	self, err := os.Readlink("/proc/self")
	return err == nil && self == "1"
}

// Start calls cmd.Start. The caller must call [Wait] afterwards.
func Start(cmd *exec.Cmd) error {
	if !adopting() {
		return cmd.Start()
	}
	own.starting.RLock()
	defer own.starting.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	own.started(cmd)
	return nil
}

// Wait calls cmd.Wait.
func Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	own.ended(cmd)
	return err
}

func (c *children) started(cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[cmd.Process.Pid] = cmd
}

// ended removes a child from the known children. The kernel may already have given the child's process ID to another child, which is not
// removed.
func (c *children) ended(cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd.Process != nil && c.known[cmd.Process.Pid] == cmd {
		delete(c.known, cmd.Process.Pid)
	}
}

// Run calls cmd.Run.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return Wait(cmd)
}

// ofRun reports whether an environment belongs to a command of a run. If baton's own environment names a run, that run does not count,
// because then every process of the container has inherited the variable.
func ofRun(environ []byte) bool {
	const name = "BATON_RUN_ID="
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if run, is := bytes.CutPrefix(entry, []byte(name)); is && string(run) != os.Getenv("BATON_RUN_ID") {
			return true
		}
	}
	return false
}
