package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"baton/bench/internal/rig"
)

func main() {
	rig.Main("bench", func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) == 1 && args[0] == childArgument {
			return child(ctx, os.Stdin, out)
		}
		if len(args) == 1 && args[0] == listenerArgument {
			return runListener(ctx)
		}
		return run(ctx, args, out)
	})
}

// options are the command line.
type options struct {
	rows       int
	table      int
	rounds     int
	backlog    int
	trickling  time.Duration
	standstill time.Duration
	only       string
	dir        string
	profile    string
	program    string
	cells      string
	full       bool
	baton      string
	write      string
}

// wants reports whether a part must run: if parts are named, a named part, otherwise a part with requirements.
func (o options) wants(part string, required bool) bool {
	if o.only == "" {
		return required
	}
	return rig.Named(o.only, part)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rows, "rows", 200_000, "rows that each program writes (the naive ones: a tenth)")
	flags.IntVar(&o.table, "table", 1_000_000, "rows that are in the table; those that are written are spread over it")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each program runs; medians count")
	flags.IntVar(&o.backlog, "backlog", 5_000_000, "changed hashes, and counters, in the memory test")
	flags.DurationVar(&o.trickling, "trickle", 30*time.Second, "how long latency is measured, for each source")
	flags.DurationVar(&o.standstill, "standstill", 30*time.Second, "how long the database stands still in the memory test of a capture")
	flags.StringVar(&o.only, "only", "", "run the `parts` whose names contain one of these words: "+strings.Join(partNames(), ", ")+" (default: those of which something is required)")
	flags.StringVar(&o.dir, "dir", "", "where the servers keep their files (default: the system's temporary directory)")
	flags.StringVar(&o.profile, "profile", "", "write baton's CPU profiles into this `directory`")
	flags.StringVar(&o.program, "program", "", "run only the programs whose names contain this `word`; no ratios then")
	flags.StringVar(&o.cells, "cells", "", "of the grid, of refused rows and of capture, run the cells whose names contain this `text`, such as hashes/postgres/500000, mysql/counters/CHECK or takeover; of the grid one of several texts, a,b")
	flags.StringVar(&o.baton, "baton", "", "of the grid, measure this `program`, not one built from here")
	flags.BoolVar(&o.full, "full", false, "run the whole grid, not a pairwise selection of it")
	flags.StringVar(&o.write, "write", "", "put the tables into this Markdown `file`, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.rows < 1000 || o.table < o.rows || o.rounds < 1 || o.backlog < 1000 || min(o.trickling, o.standstill) < time.Second {
		return o, errors.New("want only flags, -rows and -backlog from 1000, -table no less than -rows, -rounds from 1, -trickle and -standstill from 1s")
	}
	return o, nil
}

func partNames() []string {
	var names []string
	for _, p := range paths() {
		names = append(names, p.name)
	}
	return append(names, gridPart, refusedPart, capturePart, latencyPart, memoryPart, standbyPart)
}

// run runs the parts of the command line and returns missed requirements as an error.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	missed, err := measureGrid(ctx, o, out)
	if err != nil {
		return err
	}
	missedRefused, err := measureRefused(ctx, o, out)
	if err != nil {
		return err
	}
	missedCapture, err := measureCapture(ctx, o, out)
	if err != nil {
		return err
	}
	return errors.Join(missed, missedRefused, missedCapture, measureOthers(ctx, o, out))
}

// measureOthers measures all parts except the grid, the refused rows and the capture.
func measureOthers(ctx context.Context, o options, out io.Writer) error {
	apart := []string{gridPart, refusedPart, capturePart}
	if !slices.ContainsFunc(partNames(), func(name string) bool { return !slices.Contains(apart, name) && o.wants(name, true) }) {
		return nil
	}
	r := newReport(out, o)
	if err := errors.Join(measureSpeed(ctx, o, r), measureLatency(ctx, o, r), measureDaemon(ctx, o, r)); err != nil {
		return err
	}
	if o.write != "" {
		if err := r.WriteInto(o.write, "make bench"); err != nil {
			return err
		}
	}
	return r.Verdict()
}
