//go:build linux

package command_test

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"baton/internal/command"
)

// A command with a limit of processes may reach it, and then its processes compete with its warden for the processors. The warden must win,
// and the command must not inherit the warden's priority.
func TestTheWardenOfALimitedCommandHasPrecedence(t *testing.T) {
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine, because the goroutine does not unlock it
		refused <- unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
	}()
	if err := <-refused; err != nil {
		t.Skipf("it needs the right to a real-time policy: %v", err)
	}
	const (
		ordinary = "0"
		realTime = "2"
	)
	limited := command.Settings{Limits: []command.Limit{{Resource: unix.RLIMIT_NPROC, Max: 4000}}}
	nice := 7
	for want, settings := range map[string]command.Settings{realTime: limited, ordinary: {Nice: &nice}} {
		var out bytes.Buffer
		s := sh(`cat /proc/self/stat /proc/$PPID/task/$PPID/stat; cat /proc/$PPID/task/*/stat`)
		s.Stdout, s.Settings = &out, settings
		if got := run(t, t.Context(), s); got.Code != 0 {
			t.Fatalf("the command ended with code %d", got.Code)
		}
		var policies []string
		for stat := range strings.Lines(out.String()) {
			const policy = 38 // the state is field 0
			policies = append(policies, strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])[policy])
		}
		if own, first := policies[0], policies[1]; own != ordinary || first != ordinary {
			t.Errorf("settings %+v: the command has the policy %s, and the thread that started the command has %s", settings, own, first)
		}
		slices.Sort(policies)
		if others := policies[3:]; len(others) == 0 || others[0] != want || others[len(others)-1] != want {
			t.Errorf("settings %+v: the other threads of the warden have the policies %v, want %s", settings, others, want)
		}
	}
}
