package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"time"

	"baton/bench/internal/rig"
)

func main() { rig.Main("pipeline", run) }

// options are the command line.
type options struct {
	rows, table, rounds int
	tune                int
	kills, rate         int
	only, flows, parts  string
	dir, write          string
	// Of a child:
	child, redis, dsn string
	into              string
	upsert, tuned     bool
}

// These are the parts.
const (
	partSpeed = "speed"
	partKills = "kills"
)

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.IntVar(&o.rows, "rows", 400_000, "rows of a backlog (Benthos: half of it, the naive program: a tenth)")
	flags.IntVar(&o.table, "existing", 1_000_000, "rows in the table that is updated")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each program works off a backlog; medians count")
	flags.IntVar(&o.tune, "tune", 60_000, "rows for trying the settings of Benthos; 0: the middle one, untried")
	flags.IntVar(&o.kills, "kills", 30, "how often each program is killed")
	flags.IntVar(&o.rate, "rate", 3000, "entries a second while programs are killed")
	flags.StringVar(&o.only, "only", "", "compare only the `programs` whose names contain one of these words: baton, benthos, tuned, naive")
	flags.StringVar(&o.flows, "flows", "", "go only these `ways`: stream, stream-empty, list, scan")
	flags.StringVar(&o.parts, "parts", "", "run only these `parts`: speed, kills")
	flags.StringVar(&o.dir, "dir", "", "where the servers keep their files (default: the system's temporary directory)")
	flags.StringVar(&o.write, "write", "", "put the tables into this Markdown `file`, between its markers, and the chart into ../docs beside it")
	flags.StringVar(&o.child, "child", "", "be the naive program on this `way`")
	flags.StringVar(&o.redis, "redis", "", "a child's Redis")
	flags.StringVar(&o.dsn, "dsn", "", "a child's database")
	flags.StringVar(&o.into, "table", "", "a child's table")
	flags.BoolVar(&o.tuned, "tuned", false, "a child is the program that is tuned by hand")
	flags.BoolVar(&o.upsert, "upsert", false, "a child updates rows that are there")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.rows < 1000 || o.rounds < 1 || o.rate < 100 {
		return o, errors.New("want only flags, -rows from 1000, -rounds from 1, -rate from 100")
	}
	return o, nil
}

// run runs the parts of the command line and returns missed requirements as an error.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.child != "" {
		if o.tuned {
			return tunedChild(ctx, o)
		}
		return naiveChild(ctx, o)
	}
	began := time.Now()
	dir, err := os.MkdirTemp(o.dir, "baton-pipeline-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, report: rig.NewReport(out), best: map[string]setting{}, speeds: map[result][]speed{}, audits: map[result]*audit{}}
	version, err := benthosVersion()
	if err != nil {
		return err
	}
	b.report.Printf("%s. %d rows, %d in the table, %d rounds; load average at the start %.1f. %s.",
		rig.Machine(), o.rows, o.table, o.rounds, rig.Load(), version)
	built, err := build(ctx, o, dir)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, dir, o.dir, built)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := b.measure(ctx, l); err != nil {
		return err
	}
	b.tables()
	b.report.Progress("took %v", time.Since(began).Round(time.Second))
	if o.write != "" {
		if err := b.report.WriteWithChart(o.write, "make bench-pipeline", "../docs/pipeline.svg", b.chart()); err != nil {
			return err
		}
	}
	return b.report.Verdict()
}

// peers is the directory of the module with the programs that are compared with baton.
const peers = "peers"

// build builds the compared programs. The working directory is bench/, where the peers are.
func build(ctx context.Context, o options, dir string) (built programs, err error) {
	if built.self, err = os.Executable(); err != nil {
		return built, err
	}
	if rig.Named(o.only, nameBaton) {
		if built.baton, err = rig.BuildBaton(ctx, dir); err != nil {
			return built, err
		}
	}
	if rig.Named(o.only, nameBenthos) {
		built.benthos, err = rig.Build(ctx, peers, ".", filepath.Join(dir, "benthos"))
	}
	return built, err
}
