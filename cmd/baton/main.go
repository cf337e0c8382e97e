// Baton runs scheduled jobs on one of many hosts, above all the flush of Redis
// data into a SQL database, and hands over by itself when that host is gone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "time/tzdata" // a job's time zone must not depend on what the host has installed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal asks; from then on signals have their own effect again, so
	// that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, env{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.LookupEnv,
		exit:   os.Exit,
	}))
}
