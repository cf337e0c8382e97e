// Baton runs scheduled jobs on one of many hosts, above all the flush of Redis
// data into a SQL database, and hands over by itself when that host is gone.
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

// a job's time zone must not depend on what the host has installed

// oneOrder is how long signals count as one: a program that signals a process and its group,
// as timeout does, sends two at a time, and the lock would be left behind.
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
