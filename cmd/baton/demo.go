package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/demo"
)

func newDemoCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run three nodes on this machine under traffic, and audit them",
		Long: "Run three nodes on this machine, with an embedded Redis and a SQLite file,\n" +
			"under traffic. Kill the leader and watch another node take over. Beside the\n" +
			"nodes runs the naive program that baton replaces (SET NX EX, read, write,\n" +
			"delete), with the same traffic and faults. Ctrl-C or q ends the traffic. The\n" +
			"demo flushes the rest, and compares every value in the database with the\n" +
			"writes. Exit code 0 means that nothing was lost or written twice.\n\n" +
			"With --scene capture the application writes with plain INCR, HSET, DEL and\n" +
			"PEXPIRE. This scene needs a real Redis. Without --redis the demo starts an\n" +
			"installed redis-server or valkey-server.\n\n" +
			"On real servers (--redis, --database) the demo uses keys with a random name,\n" +
			"and a schema or database of its own, and removes them at the end.",
		Example: "  baton demo\n" +
			"  baton demo --scene capture\n" +
			"  baton demo --duration 30s --chaos 3s -o json\n" +
			"  baton demo --duration 40s --chaos 5s --picture demo.svg\n" +
			"  baton demo --redis redis://127.0.0.1/0 --database postgres://me@127.0.0.1/db",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the file of this program, to start three nodes with it: %w", err)
			}
			if err := o.Check(); err != nil {
				return cmdline.UsageError(err)
			}
			o.Program, o.Environ, o.TempDir = program, os.Environ(), os.TempDir()
			o.Log, o.Screen = e.Stderr, screen(e)
			if o.Screen != nil {
				keys, restore := show.Keys(e.Stdin)
				defer restore()
				o.Keys = keys
			}
			ctx, stop := untilHangup(cmd.Context())
			defer stop()
			report, err := demo.Run(ctx, o)
			if err != nil {
				return err
			}
			if err := out.Print(e.Stdout, report, report.Print); err != nil {
				return err
			}
			if !report.Clean() {
				return cmdline.WithCode(cmdline.ExitFailure,
					fmt.Errorf("the demo found %d lost and %d duplicated changes; see %s", report.Lost, report.Duplicated, report.Kept))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&o.Duration, "duration", 0, "end by itself after this `time` of traffic")
	flags.DurationVar(&o.Chaos, "chaos", 0, "kill or freeze the leader, at random, once in this `time`")
	flags.StringVar(&o.Scene, "scene", demo.Scenes()[0],
		"sync: an application that marks its changes; capture: an application without marks")
	flags.StringVar(&o.Redis, "redis", "", "a real Redis, redis://host:port/db, instead of the embedded one")
	flags.StringVar(&o.Picture, "picture", "", "draw the run into this `file`, as SVG")
	flags.BoolVar(&o.NoNaive, "no-naive", false, "do not run the naive program beside the nodes")
	flags.StringVar(&o.Database, "database", "",
		"a real PostgreSQL (postgres://…) or MariaDB (mysql://… or user:password@tcp(host:port)/db) instead of SQLite")
	flags.Uint64Var(&o.Seed, "seed", 0, "seed of the random traffic and chaos (default: any)")
	flags.IntVar(&o.Rate, "rate", demo.DefaultRate, "changes per second")
	flags.BoolVar(&o.Keep, "keep", false, "keep the directory with logs, configuration and the SQLite file")
	out.AddFlag(cmd, e.Getenv)
	cmd.AddCommand(newNaiveCommand())
	return cmd
}

// newNaiveCommand returns the hidden command that runs the naive program: a flush without baton, which the demo starts beside the nodes.
func newNaiveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "naive FILE", Hidden: true, Args: cmdline.OneArg,
		Short: "The program that baton replaces, for the demo",
		RunE:  func(cmd *cobra.Command, args []string) error { return demo.RunNaive(cmd.Context(), args[0]) },
	}
}

// untilHangup returns a context that also ends when the terminal closes, because the demo must not leave its data on a server. If nohup(1)
// has made the process ignore SIGHUP, the process continues to ignore SIGHUP.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// screen returns the terminal at standard error, or nil if standard error is no terminal. It does not use standard output, because standard
// output is for the report.
func screen(e cmdline.Env) *demo.Screen {
	size, ok := show.TerminalSize(e.Stderr)
	if !ok {
		return nil
	}
	noColor, _ := e.Getenv("NO_COLOR")
	return &demo.Screen{Writer: e.Stderr, Size: size, Color: noColor == ""}
}
