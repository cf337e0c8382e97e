package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"baton/bench/internal/rig"
)

func main() { rig.Main("jobs", run) }

// options are the command line.
type options struct {
	jobs, burst, rounds int
	every               time.Duration
	dir, program, write string
	only                string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("jobs", flag.ContinueOnError)
	flags.IntVar(&o.jobs, "jobs", 2000, "how many jobs the node has")
	flags.IntVar(&o.burst, "burst", 200, "how many of them are due at the same slot")
	flags.IntVar(&o.rounds, "rounds", 8, "how many slots they have")
	flags.DurationVar(&o.every, "every", 5*time.Second, "from slot to slot")
	flags.StringVar(&o.dir, "dir", "", "where Redis keeps its files (default: the system's temporary directory)")
	flags.StringVar(&o.program, "program", "", "measure this baton instead of building one")
	flags.StringVar(&o.only, "only", "", "idle: measure flushes with nothing to do, and nothing else")
	flags.StringVar(&o.write, "write", "", "put the tables into this Markdown `file`, between its markers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.burst < 1 || o.jobs < o.burst || o.rounds < 1 || o.every < time.Second {
		return o, errors.New("want only flags, more jobs than are due at once, a round or more, and a second or more between slots")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "baton-bench-jobs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.program == "" {
		if o.program, err = rig.BuildBaton(ctx, dir); err != nil {
			return err
		}
	}
	report := rig.NewReport(out)
	report.Printf("%s\n", rig.Machine())
	idle := o
	idle.burst, idle.rounds = 0, 0
	none := idle
	none.jobs = 0
	if o.only == "idle" {
		if err := idles(ctx, o, report, dir); err != nil {
			return err
		}
		return report.Verdict()
	}
	var got []*trial
	for _, o := range []options{none, idle, o} {
		report.Progress("%d jobs, %d due at once, %d times", o.jobs, o.burst, o.rounds)
		t, err := measure(ctx, o, dir)
		if err != nil {
			return err
		}
		got = append(got, t)
	}
	tables(report, o, got[0], got[1], got[2])
	if err := idles(ctx, o, report, dir); err != nil {
		return err
	}
	if o.write != "" {
		if err := report.WriteInto(o.write, "make bench-jobs"); err != nil {
			return err
		}
	}
	return report.Verdict()
}

// idles measures the cost of flushes that have nothing to do.
func idles(ctx context.Context, o options, report *rig.Report, dir string) error {
	var got []idleFlush
	for _, schedule := range []string{"@every 1s", "@always"} {
		report.Progress("%d flushes %s with nothing to do; the machine's load is %.1f", idleFlushes, schedule, rig.Load())
		g, err := measureIdle(ctx, o, schedule, dir)
		if err != nil {
			return err
		}
		got = append(got, g)
	}
	idleTable(report, got[0], got[1])
	return nil
}

// tables prints the results, and the requirements.
func tables(r *rig.Report, o options, none, idle, busy *trial) {
	r.Printf("| one leader | resident memory | peak | goroutines |")
	r.Printf("|---|--:|--:|--:|")
	r.Printf("| no job | %.1f MB | %.1f MB | %d |", none.memory, none.peak, none.goroutines)
	r.Printf("| %d jobs, none due | %.1f MB | %.1f MB | %d |", o.jobs, idle.memory, idle.peak, idle.goroutines)
	r.Printf("| %d jobs, %d due every %v, after %d rounds | %.1f MB | %.1f MB | %d |\n", o.jobs, o.burst, o.every, o.rounds, busy.memory, busy.peak, busy.goroutines)
	r.Printf("| %d starts at one slot, of %d jobs, ms | p50 | p90 | p99 | max |", o.burst, o.jobs)
	r.Printf("|---|--:|--:|--:|--:|")
	for _, row := range []struct {
		what string
		of   []time.Duration
	}{{"slot → start of the run", busy.started}, {"slot → end of `true`", busy.ended}} {
		r.Printf("| %s | %d | %d | %d | %d |", row.what, millis(row.of, 50), millis(row.of, 90), millis(row.of, 99), millis(row.of, 100))
	}
	r.Printf("\nProcessor time of a run, its warden and its command included: %.1f ms; of it the daemon's own: %.1f ms, Redis': %.1f ms.\n",
		busy.perRun(busy.allCPU), busy.perRun(busy.ownCPU), busy.perRun(busy.redisCPU))
	want := o.burst * o.rounds
	for _, f := range busy.failures[:min(5, len(busy.failures))] {
		r.Progress("%s", f)
	}
	r.Want(len(busy.ended) == want && len(busy.failures) == 0, "%d of %d slots were run; missed or failed: %d", len(busy.ended), want, len(busy.failures))
	r.Want(millis(busy.ended, 99) < 1000, "scheduling delay p99 below 1 s, even if the command started last thing before its end: %d ms", millis(busy.ended, 99))
	r.Want(idle.goroutines-none.goroutines < o.jobs/20, "no goroutine for an idle job: %d more with %d jobs", idle.goroutines-none.goroutines, o.jobs)
}
