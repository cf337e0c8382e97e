//go:build linux

package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kinds are the ways in which a command has running processes.
var kinds = map[string]string{
	"a child":                 `sh -c 'echo ready; sleep 1000; :'; :`,
	"a child beside it":       `sh -c 'echo ready; sleep 1000; :' & wait`,
	"a session of its own":    `setsid sh -c 'echo ready; sleep 1000; :' & wait`,
	"a daemon, forked twice":  `(setsid sh -c 'echo ready; sleep 1000; :' &); sleep 1000; :`,
	"a child deaf to SIGTERM": `trap '' TERM HUP INT; sh -c 'echo ready; sleep 1000; sleep 1000' & wait; sleep 1000; sleep 1000`,
}

// One or two of baton, guard and warden may be killed: the remaining processes end all processes that the command has started, wherever
// these are. Only guard and warden must not both be killed.
func TestNothingOutlivesThoseWhoWatchOverIt(t *testing.T) {
	deaths := map[string]func(p *runnerProcess, t *testing.T) []int{
		"baton":                func(p *runnerProcess, _ *testing.T) []int { return []int{p.cmd.Process.Pid} },
		"the warden":           func(p *runnerProcess, t *testing.T) []int { return []int{p.warden(t)} },
		"baton and the guard":  func(p *runnerProcess, t *testing.T) []int { return []int{p.cmd.Process.Pid, p.guard(t)} },
		"baton and the warden": func(p *runnerProcess, t *testing.T) []int { return []int{p.cmd.Process.Pid, p.warden(t)} },
	}
	for kind, script := range kinds {
		for who, victims := range deaths {
			t.Run(kind+", "+who, func(t *testing.T) {
				p := startScript(t, time.Hour, script)
				if n := len(marked(t)); n < 2 {
					t.Fatalf("%d processes run", n)
				}
				pids := victims(p, t)
				for _, pid := range pids { // at the same moment, as far as these processes can notice
					p.signal(t, pid, syscall.SIGSTOP)
				}
				for _, pid := range pids {
					p.signal(t, pid, syscall.SIGKILL)
				}
				p.deadBy(t, time.Now().Add(soon))
			})
		}
	}
}

// The caller releases the lock when Run has returned.
func TestRunReturnsWhenNothingIsLeftAlthoughTheWardenWasKilled(t *testing.T) {
	for kind, script := range kinds {
		t.Run(kind, func(t *testing.T) {
			p := startScript(t, time.Hour, script)
			p.signal(t, p.warden(t), syscall.SIGKILL)
			_ = p.cmd.Wait() // the log says how it ended
			if left := len(marked(t)); left > 0 {
				t.Errorf("%d processes are left", left)
			}
			if !strings.Contains(p.log.String(), "the warden process was killed") {
				t.Errorf("the process says: %s", &p.log)
			}
		})
	}
}

// The guard is needed only if the warden is gone.
func TestACommandGoesOnWithoutItsGuard(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		p := startScript(t, time.Hour, `trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done`)
		pid := commandOf(t)
		p.signal(t, p.guard(t), s)
		p.signal(t, pid, syscall.SIGUSR1)
		_ = p.cmd.Wait() // the log says how it ended
		if !strings.Contains(p.log.String(), `"Code":7`) {
			t.Errorf("after %v of the guard the process says %s", s, &p.log)
		}
	}
}

// A user who kills baton by a pattern does not kill the processes that end baton's commands.
func TestNoNameIsThatOfWhoeverRanTheCommand(t *testing.T) {
	p := startRunnerFor(t, time.Hour)
	for pid, want := range map[int]string{p.guard(t): "guard", p.warden(t): "warden"} {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || string(name) != want+"\n" {
			t.Errorf("a process is called %q, %v; want %q", name, err, want)
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		if err != nil || len(words) != 2 || words[0] != want {
			t.Errorf("%s: its command line is %q, %v; want nothing of baton's, nor of the command's", want, words, err)
		}
	}
}
