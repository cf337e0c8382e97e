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
			"under traffic. Kill the leader and watch another node take over. Beside them\n" +
			"the program that baton replaces (SET NX EX, read, write, delete) has the same\n" +
			"traffic and the same faults. Ctrl-C or q ends the traffic. The demo flushes\n" +
			"the rest, and compares every value in the database with the writes. Exit code\n" +
			"0: nothing was lost, and nothing written twice.\n\n" +
			"With --scene capture the application knows nothing of baton: it writes with\n" +
			"plain INCR, HSET, DEL and PEXPIRE, and the nodes follow the replication\n" +
			"stream. That takes a real Redis: the demo starts an installed redis-server or\n" +
			"valkey-server for itself, or uses that of --redis.\n\n" +
			"With --redis and --database the same runs on real servers. The demo uses keys\n" +
			"with a random name, and a schema or database of its own, and removes them at\n" +
			"the end.\n\n" +
			"With --picture FILE it draws the leaders, the written and flushed changes, and\n" +
			"the lost and doubled ones: docs/demo.svg is one.",
		Example: "  baton demo\n" +
			"  baton demo --scene capture\n" +
			"  baton demo --duration 30s --chaos 3s -o json\n" +
			"  baton demo --duration 40s --chaos 5s --picture demo.svg\n" +
			"  baton demo --redis redis://127.0.0.1/0 --database postgres://me@127.0.0.1/db",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program, to run three of it: %w", err)
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
					fmt.Errorf("%d lost, %d duplicated; see %s", report.Lost, report.Duplicated, report.Kept))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&o.Duration, "duration", 0, "end by itself after this `time` of traffic")
	flags.DurationVar(&o.Chaos, "chaos", 0, "kill or freeze the leader, at random, once in this `time`")
	flags.StringVar(&o.Scene, "scene", demo.Scenes()[0],
		"sync: an application that marks what it changes; capture: one that knows nothing of baton")
	flags.StringVar(&o.Redis, "redis", "", "a real Redis, redis://host:port/db, instead of the embedded one")
	flags.StringVar(&o.Picture, "picture", "", "draw the run into this `file`, as SVG")
	flags.BoolVar(&o.NoNaive, "no-naive", false, "without the naive program beside the nodes")
	flags.StringVar(&o.Database, "database", "",
		"a real PostgreSQL (postgres://…) or MariaDB (mysql://… or user:password@tcp(host:port)/db) instead of SQLite")
	flags.Uint64Var(&o.Seed, "seed", 0, "of what is random in traffic and chaos (default: any)")
	flags.IntVar(&o.Rate, "rate", demo.DefaultRate, "changes a second")
	flags.BoolVar(&o.Keep, "keep", false, "keep the directory with logs, configuration and the SQLite file")
	out.AddFlag(cmd, e.Getenv)
	cmd.AddCommand(newNaiveCommand())
	return cmd
}

// newNaiveCommand is the program that the demo runs beside the nodes.
func newNaiveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "naive FILE", Hidden: true, Args: cmdline.OneArg,
		Short: "The program that baton replaces, for the demo",
		RunE:  func(cmd *cobra.Command, args []string) error { return demo.RunNaive(cmd.Context(), args[0]) },
	}
}

// untilHangup ends a context also when the terminal closes: the demo must not leave its data on a
// server. nohup(1) has the signal ignored, and that stays so.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// screen is the terminal at standard error, if there is one: standard output is
// for the report.
func screen(e cmdline.Env) *demo.Screen {
	size, ok := show.TerminalSize(e.Stderr)
	if !ok {
		return nil
	}
	noColor, _ := e.Getenv("NO_COLOR")
	return &demo.Screen{Writer: e.Stderr, Size: size, Color: noColor == ""}
}
