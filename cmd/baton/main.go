// Baton runs scheduled jobs on one of many hosts, above all the flush of Redis data into a SQL database. If that host fails, another
// host takes over.
//
// This package is the command line. It turns arguments into an exit code. Each command is in its own file. A command reads the
// configuration, calls a package in internal, and prints the result. It decides nothing about locks, jobs or data.
//
//	root.go               the list of commands; execute prints the error of a command and chooses the exit code
//	run.go                the daemon: baton run
//	status.go, who.go …   questions; a node answers them through its API, or this process answers them through its own connections
//	stepdown.go, pause.go … orders; each sends one operate.Order
//	lock.go, release.go   a lock around a command, and the release of a lock after a crash
//	exit_codes.go         the only place that explains the exit codes
//	internal/cmdline      the environment, the flags and the configuration that several commands share
//	internal/jobcmd, internal/deadcmd, internal/show
//	                      baton job, baton dead, and the output of all commands
//
// The invariants:
//
//   - A command reaches its environment only through [cmdline.Env], so that a test can run the command in the test's own process. Only main
//     uses the real environment.
//   - A command returns its error. execute prints the error once, on standard error, and its exit code says which kind of failure it was.
//   - With -o json or yaml, standard output has one document and nothing else. Progress and warnings go to standard error.
//   - Texts from outside reach a terminal only through package show, which removes control codes.
//
// The failures: wrong arguments, or a configuration that cannot be used, end the command before it changes anything ([cmdline.ExitUsage]).
// If no node leads, an order ends with [cmdline.ExitNoLeader]. The first SIGINT or SIGTERM ends the command in an orderly way. A second
// signal, more than a second later, kills the process. A lock that the process holds then ends with its lease.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"baton/cmd/baton/internal/cmdline"

	_ "time/tzdata"
)

// Package time/tzdata is embedded because a job's time zone must not depend on the host's time zone database.

// oneOrder is the time within which several signals count as one signal. A program such as timeout sends a signal to a process and to its
// group, so two signals arrive together. If the second one counted, the process would be killed before it releases its lock.
const oneOrder = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal ends the context. After oneOrder, signals have their default effect again, so that a second signal kills the
	// process.
	context.AfterFunc(ctx, func() { time.AfterFunc(oneOrder, stop) })
	os.Exit(run(ctx, cmdline.Env{
		Args:   os.Args[1:],
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Getenv: os.LookupEnv,
		Exit:   os.Exit,
	}))
}
