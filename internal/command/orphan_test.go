//go:build linux

package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stat returns the kernel's data about a process: its state, parent, group and session.
func stat(pid int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")) // empty for a process that is gone
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

// commandOf returns the command itself among the living processes of a family: the leader of the group.
func commandOf(t *testing.T) int {
	t.Helper()
	for _, pid := range marked(t) {
		if s := stat(pid); len(s) > 3 && s[2] == strconv.Itoa(pid) && s[3] != s[2] {
			return pid
		}
	}
	t.Fatal("the command is not found")
	return 0
}

// There may be no near deadline, and the process that ran the command can no longer end it.
func TestACommandIsEndedWhenWhoeverRanItIsKilledLongBeforeTheDeadline(t *testing.T) {
	p := startRunnerFor(t, time.Hour)
	killed := p.signal(t, p.cmd.Process.Pid, syscall.SIGKILL)
	p.deadBy(t, killed.Add(time.Minute))
}

// There may be no other process that can end the command.
func TestACommandDiesWithItsWardenThoughWhoeverRanItIsStopped(t *testing.T) {
	p := startRunnerFor(t, time.Hour)
	pid, guard, warden := commandOf(t), p.guard(t), p.warden(t)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGSTOP)
	p.signal(t, guard, syscall.SIGSTOP)
	killed := p.signal(t, warden, syscall.SIGKILL)
	for s := stat(pid); len(s) > 0 && s[0] != "Z"; s = stat(pid) {
		if time.Since(killed) > soon {
			t.Fatalf("the command is alive (%s) although its warden is dead", s[0])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A shell does not pass signals on.
func TestAStopIsToldToAllOfTheGroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon) // ends a command that prints nothing
	defer cancel()
	o := newWitness(t)
	s := sh(`sh -c 'trap "echo heard; exit" TERM; echo ready; while :; do sleep 0.01; done' &
		trap '' TERM; echo ready; wait; exit 7`)
	s.Stdout, s.Grace = o.w, soon/2
	go func() { <-o.lines; <-o.lines; cancel() }()
	r := run(t, ctx, s)
	if !r.Stopped || r.Signal != 0 || r.Code != 7 {
		t.Errorf("%+v, want it ended by itself when what it has started had", r)
	}
	select {
	case line := <-o.lines:
		if line != "heard" {
			t.Errorf("it said %q", line)
		}
	case <-time.After(soon):
		t.Error("what the command has started was not told to end")
	}
}

// A command that must end gets its grace, but no longer than the lease lasts.
func TestAGraceEndsWithTheDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := newWitness(t)
	s := sh(`trap '' TERM; echo ready; while :; do sleep 1; done`)
	until := time.Now().Add(3 * time.Second)
	s.Stdout, s.Grace, s.Drain = o.w, time.Hour, 500*time.Millisecond
	s.Until = func() time.Duration { return time.Until(until) }
	go func() { <-o.lines; cancel() }()
	if r := run(t, ctx, s); !r.Stopped || r.Signal != syscall.SIGKILL {
		t.Errorf("%+v; want it killed before its 3 seconds are over", r)
	}
}
