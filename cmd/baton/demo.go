package main

import (
	"fmt"
	"io"
	"os"

	"baton/internal/demo"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newDemoCommand(e env) *cobra.Command {
	var out output
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show it all at work on this machine: three nodes, traffic, and an audit",
		Long: "Run three nodes on this machine, with an embedded Redis and a SQLite file, under\n" +
			"traffic. Kill the leader and watch another node take over. Ctrl-C ends the traffic;\n" +
			"what is left is flushed, and every value in the database is compared with what was\n" +
			"written. Exit code 0: nothing was lost, and nothing written twice.\n\n" +
			"With --redis and --database the same runs on real servers. The demo uses keys with\n" +
			"a random name, and a schema or database of its own, and removes them at the end.",
		Example: "  baton demo\n" +
			"  baton demo --duration 30s --chaos 3s -o json\n" +
			"  baton demo --redis redis://127.0.0.1:6379/0 --database postgres://me:secret@127.0.0.1/test",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program, to run three of it: %w", err)
			}
			if err := o.Check(); err != nil {
				return usageError(err)
			}
			o.Program, o.Environ, o.TempDir = program, os.Environ(), os.TempDir()
			o.Log, o.Screen = e.stderr, screen(e)
			report, err := demo.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := out.print(e.stdout, report, report.Print); err != nil {
				return err
			}
			if !report.Clean() {
				return &exitError{exitFailure, fmt.Errorf("%d lost, %d duplicated; see %s", report.Lost, report.Duplicated, report.Kept)}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&o.Duration, "duration", 0, "end by itself after this `time` of traffic")
	flags.DurationVar(&o.Chaos, "chaos", 0, "kill or freeze the leader, at random, once in this `time`")
	flags.StringVar(&o.Redis, "redis", "", "a real Redis, redis://host:port/db, instead of the embedded one")
	flags.StringVar(&o.Database, "database", "", "a real PostgreSQL (postgres://…) or MariaDB (mysql://… or user:password@tcp(host:port)/db) instead of SQLite")
	flags.Uint64Var(&o.Seed, "seed", 0, "of what is random in traffic and chaos (default: any)")
	flags.IntVar(&o.Rate, "rate", demo.DefaultRate, "changes a second")
	flags.BoolVar(&o.Keep, "keep", false, "keep the directory with logs, configuration and the SQLite file")
	out.addFlag(cmd, e)
	return cmd
}

// screen is the terminal at standard error, if there is one: standard output is
// for the report.
func screen(e env) *demo.Screen {
	size, ok := terminalSize(e.stderr)
	if !ok {
		return nil
	}
	noColor, _ := e.getenv("NO_COLOR")
	return &demo.Screen{Writer: e.stderr, Size: size, Color: noColor == ""}
}

// terminalSize tells how a terminal's size is found; false if w is none.
func terminalSize(w io.Writer) (size func() (width, height int), ok bool) {
	f, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil, false
	}
	return func() (int, int) {
		s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || s.Col == 0 || s.Row == 0 {
			return 80, 24
		}
		return int(s.Col), int(s.Row)
	}, true
}
