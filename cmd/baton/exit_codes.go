package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/command"
	"baton/internal/daemon"
	"baton/internal/lockcmd"
)

// The exit codes of run and lock alone. [exitCodes] says what all of them mean.
const (
	exitOverrun = daemon.ExitCannotStop
	exitNoRedis = 69 // EX_UNAVAILABLE
	exitNotHad  = 75 // EX_TEMPFAIL: try again later
	exitLost    = lockcmd.ExitLockLost
)

// exitMeaning is the meaning of a code, and the commands that use it. A code of lock may also
// be the exit code of the command that it runs.
type exitMeaning struct {
	code  int
	means string
	// of are the commands, without the program's name; none: all of them.
	of []string
	// lock: the code is lock's alone.
	lock bool
}

// exitCodes is the one place that explains the codes: the help topic, the manual and
// docs/reference/exit-codes.md are made of it, and a test makes each code occur.
func exitCodes() []exitMeaning {
	leads := []string{"leader", "stepdown", "drill", "resume", "job run", "job cancel", "job verify", "job backfill"}
	lock := []string{"lock"}
	return []exitMeaning{
		{code: cmdline.ExitOK, means: "done"},
		{code: cmdline.ExitFailure, means: "it failed, or job verify found a difference; " +
			"standard error (doctor, job preview: the table) says why"},
		{code: cmdline.ExitUsage, means: "wrong arguments, or a configuration that cannot be used"},
		{code: cmdline.ExitNoLeader, means: "no node leads, or the lock is free (lock --break)", of: append(leads, "lock")},
		{code: exitOverrun, means: "the leader's work did not end before its lease, so the process did", of: []string{"run"}},
		{code: exitNoRedis, means: "redis unavailable, or unfit to hold a lock safely", of: lock, lock: true},
		{code: exitNotHad, means: "another client has a lock (-E chooses another code)", of: lock, lock: true},
		{code: exitLost, means: "a lock was lost, and the command was ended", of: lock, lock: true},
		{code: command.CodeNoExec, means: "the command cannot be run", of: lock, lock: true},
		{code: command.CodeNotFound, means: "the command was not found", of: lock, lock: true},
	}
}

// lockCodes is the last part of the help of lock.
func lockCodes() string {
	var b strings.Builder
	for _, c := range exitCodes() {
		if c.lock {
			fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.means)
		}
	}
	fmt.Fprintf(&b, "  %3d  wrong arguments", cmdline.ExitUsage)
	return b.String()
}

func newExitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit codes of baton:\n\n")
	own := false
	for _, c := range exitCodes() {
		if c.lock && !own {
			own = true
			b.WriteString("\nlock answers with its command's exit code, or 128 and the signal that ended it; else:\n\n")
		}
		fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.means)
		if len(c.of) > 0 && !c.lock {
			fmt.Fprintf(&b, "       (%s)\n", strings.Join(c.of, ", "))
		}
	}
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  strings.TrimRight(b.String(), "\n"),
	}
}
