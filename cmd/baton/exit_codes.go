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

// These exit codes are used only by "baton run" and "baton lock". [exitCodes] explains all exit codes.
const (
	exitOverrun = daemon.ExitCannotStop
	exitNoRedis = 69 // EX_UNAVAILABLE
	exitNotHad  = 75 // EX_TEMPFAIL: try again later
	exitLost    = lockcmd.ExitLockLost
)

// exitMeaning describes an exit code: its meaning, and the commands that use the code. An exit code of "baton lock" may also come from the
// command that "baton lock" runs.
type exitMeaning struct {
	code  int
	means string
	// of lists the commands that use the code, without the program's name. An empty list means all commands.
	of []string
	// lock means that only baton lock uses the code.
	lock bool
}

// exitCodes is the only place that explains the exit codes. The help topic, the manual and docs/reference/exit-codes.md are generated from
// this list, and a test produces each code.
func exitCodes() []exitMeaning {
	leads := []string{"leader", "stepdown", "drill", "resume", "job run", "job cancel", "job verify", "job backfill"}
	lock := []string{"lock"}
	return []exitMeaning{
		{code: cmdline.ExitOK, means: "done"},
		{code: cmdline.ExitFailure, means: "the command failed, or job verify found a difference; " +
			"standard error says why, or the table of doctor and job preview"},
		{code: cmdline.ExitUsage, means: "wrong arguments, or a configuration that cannot be used"},
		{code: cmdline.ExitNoLeader, means: "no node leads, or the lock is free (lock --break)", of: append(leads, "lock")},
		{code: exitOverrun, means: "the leader's work did not end before its lease, so the process exited", of: []string{"run"}},
		{code: exitNoRedis, means: "redis unavailable, or unfit to hold a lock safely", of: lock, lock: true},
		{code: exitNotHad, means: "another client has a lock (-E chooses another code)", of: lock, lock: true},
		{code: exitLost, means: "a lock was lost, and the command was ended", of: lock, lock: true},
		{code: command.CodeNoExec, means: "the command cannot be run", of: lock, lock: true},
		{code: command.CodeNotFound, means: "the command was not found", of: lock, lock: true},
	}
}

// lockCodes returns the last part of the help text of "baton lock": the list of its exit codes.
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
			b.WriteString("\nlock exits with its command's exit code, or 128 plus the signal that ended it; else:\n\n")
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
