package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"baton/bench/internal/rig"
)

func main() { rig.Main("election", run) }

// options are the command line.
type options struct {
	only  string
	parts string
	ttls  []time.Duration
	quick bool
	dir   string
	write string
	// Of a child:
	child string
	redis string
	node  string
	quiet bool
}

func parse(args []string) (options, error) {
	var o options
	var ttls string
	flags := flag.NewFlagSet("election", flag.ContinueOnError)
	var names []string
	for _, c := range contenders() {
		names = append(names, c.name)
	}
	flags.StringVar(&o.only, "only", "", "compare only the `contenders` whose names contain one of these words: "+strings.Join(names, ", "))
	flags.StringVar(&o.parts, "parts", "", "run only the `parts` whose names contain one of these words: "+strings.Join(partNames(), ", "))
	flags.StringVar(&ttls, "ttls", "2s,10s", "leases to compare with")
	flags.BoolVar(&o.quick, "quick", false, "fewer trials, and the first lease only: figures to develop with, not to publish")
	flags.StringVar(&o.dir, "dir", "", "where the servers keep their files (default: the system's temporary directory)")
	flags.StringVar(&o.write, "write", "", "put the tables into this Markdown `file`, between its markers, and the chart into ../docs beside it")
	flags.StringVar(&o.child, "child", "", "be one process of this `contender`")
	flags.StringVar(&o.redis, "redis", "", "a child's Redis")
	flags.StringVar(&o.node, "node", "", "a child's name")
	flags.BoolVar(&o.quiet, "quiet", false, "a child tells only when it starts and stops to lead")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for word := range strings.SplitSeq(ttls, ",") {
		ttl, err := time.ParseDuration(strings.TrimSpace(word))
		if err != nil || ttl < 2*time.Second || ttl%time.Second != 0 {
			return o, fmt.Errorf("-ttls: want whole seconds, from 2s: %q", word)
		}
		o.ttls = append(o.ttls, ttl)
	}
	if o.quick {
		o.ttls = o.ttls[:1]
	}
	if flags.NArg() > 0 || len(wanted(o.only)) == 0 || len(partsOf(o)) == 0 {
		return o, errors.New("want only flags, and contenders and parts that there are")
	}
	return o, nil
}

// run runs the parts of the command line and returns missed requirements as an error.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.child != "" {
		return child(ctx, o, out)
	}
	began := time.Now()
	dir, err := os.MkdirTemp(o.dir, "baton-election-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, report: rig.NewReport(out), results: map[result]*outcome{}}
	b.report.Printf("%s, load average at the start %.1f. %s.", rig.Machine(), rig.Load(), versions())
	if b.baton, err = rig.BuildBaton(ctx, dir); err != nil {
		return err
	}
	for _, p := range partsOf(o) {
		if err := b.run(ctx, p); err != nil {
			return err
		}
	}
	b.tables()
	b.report.Progress("took %v", time.Since(began).Round(time.Second))
	if o.write != "" {
		if err := b.report.WriteWithChart(o.write, "make bench-election", "../docs/election.svg", b.chart()); err != nil {
			return err
		}
	}
	return b.report.Verdict()
}

// versions returns the versions of the compared libraries.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "Libraries of unknown versions"
	}
	var all []string
	for _, m := range info.Deps {
		for _, word := range []string{"redsync", "redislock", "rueidis", "gocron", "go-redis/v9"} {
			if strings.Contains(m.Path, word) {
				all = append(all, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
				break
			}
		}
	}
	return strings.Join(all, ", ")
}

// child is one process of one contender.
func child(ctx context.Context, o options, out io.Writer) error {
	for _, c := range contenders() {
		if c.name == o.child && c.campaign != nil {
			ttl := o.ttls[0]
			return c.campaign(ctx, setting{redis: o.redis, key: lockKey, node: o.node, ttl: ttl,
				poll: pollInterval(ttl), renew: c.renew(ttl), witness: &witness{out: out, quiet: o.quiet}})
		}
	}
	return fmt.Errorf("no contender %q", o.child)
}
