package warden

import (
	"syscall"
	"testing"
	"time"
)

// Orphans of a command that forks without end must be reaped even if the process that watches the command has no time.
func TestEveryExitIsReapedThoughNobodyListens(t *testing.T) {
	const orphans = 50
	first := 0
	for i := range orphans {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 7"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = pid
		}
	}
	ended := reap(first)
	for !childless() { // no event shows that the last child is gone
		time.Sleep(time.Millisecond)
	}
	if status, ok := <-ended; !ok || status.ExitStatus() != 7 {
		t.Errorf("the command's end: %v, %v", status, ok)
	}
	if _, ok := <-ended; ok {
		t.Error("more than the command's end is told")
	}
}
