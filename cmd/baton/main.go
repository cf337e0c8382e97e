// Baton runs scheduled jobs on one of many hosts, above all the flush of Redis
// data into a SQL database. When that host is gone, another one takes over.
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

// a job's time zone must not depend on the host's time zone database

// oneOrder is the time within which signals count as one. A program such as timeout signals a
// process and its group, so two arrive at a time. A second order would leave the lock behind.
const oneOrder = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal asks; after a moment signals have their own effect again, so that a
	// second one kills.
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
