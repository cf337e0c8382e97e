package orphans

import (
	"os"
	"os/exec"
	"testing"
)

// The kernel reuses a process ID as soon as the process was waited for. A child with such an ID must not become an orphan, because its exit
// status belongs to the caller that waits for it.
func TestAChildWithAReusedProcessIDStaysKnown(t *testing.T) {
	first, second := &exec.Cmd{Process: &os.Process{Pid: 7}}, &exec.Cmd{Process: &os.Process{Pid: 7}}
	c := children{known: map[int]*exec.Cmd{}}
	c.started(first) // its process ends, and is waited for
	c.started(second)
	c.ended(first)
	if c.known[7] != second {
		t.Error("the second child is not known any more")
	}
	c.ended(second)
	if len(c.known) > 0 {
		t.Errorf("known after the end of all children: %v", c.known)
	}
}
