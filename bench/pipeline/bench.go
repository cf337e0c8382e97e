package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"baton/bench/internal/rig"
)

// bench is one run of this program.
type bench struct {
	options options
	report  *rig.Report
	best    map[string]setting // of Benthos, by flow
	tried   map[string]int
	speeds  map[result][]speed
	audits  map[result]*audit
}

// result names a flow and a contender.
type result struct{ flow, contender string }

// measure does all wanted parts.
func (b *bench) measure(ctx context.Context, l *lab) error {
	b.tried = map[string]int{}
	for _, f := range flows() {
		if !rig.Named(b.options.flows, f.name) {
			continue
		}
		if err := b.tune(ctx, l, f); err != nil {
			return err
		}
		if rig.Named(b.options.parts, partSpeed) {
			if err := b.speed(ctx, l, f); err != nil {
				return err
			}
		}
		if rig.Named(b.options.parts, partKills) && !f.once && !f.empty {
			if err := b.kill(ctx, l, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted returns the contenders to compare.
func (b *bench) wanted() []contender {
	return slices.DeleteFunc(contenders(), func(c contender) bool { return !rig.Named(b.options.only, c.name) })
}

// tune tries the available settings.
func (b *bench) tune(ctx context.Context, l *lab, f flow) error {
	if f.empty {
		s, known := b.best[flowStream]
		if b.best[f.name] = s; known {
			return nil
		}
	}
	for _, c := range b.wanted() {
		if c.settings == nil {
			continue
		}
		all := c.settings(f)
		if b.options.tune == 0 {
			b.best[f.name] = all[len(all)/2]
			continue
		}
		most := 0.0
		for _, s := range all {
			got, err := l.turn(ctx, c, f, s, b.options.tune, b.options.table)
			if err != nil {
				return err
			}
			b.report.Progress("%-6s %-8s tried %-48v %8.0f rows/s, %5.2f CPU s per 1 M", f.name, c.name, s, got.perSecond(), got.perMillion())
			b.tried[f.name]++
			if got.perSecond() > most {
				most, b.best[f.name] = got.perSecond(), s
			}
		}
	}
	return nil
}

// setting returns the setting with which a contender runs.
func (b *bench) setting(c contender, f flow) setting {
	if c.settings == nil {
		return setting{}
	}
	return b.best[f.name]
}

// speed lets the contenders take turns; each round begins with another contender.
func (b *bench) speed(ctx context.Context, l *lab, f flow) error {
	some := slices.DeleteFunc(b.wanted(), func(c contender) bool { return c.speedOnly && f.source != flowStream })
	for round := range b.options.rounds {
		for i := range some {
			c := some[(i+round)%len(some)]
			got, err := l.turn(ctx, c, f, b.setting(c, f), b.options.rows/max(1, c.share), b.options.table)
			if err != nil {
				return err
			}
			b.report.Progress("%-6s %-8s round %d %8.0f rows/s, %5.2f CPU s per 1 M, %4.0f MB", f.name, c.name, round+1, got.perSecond(), got.perMillion(), got.peakMB)
			r := result{f.name, c.name}
			b.speeds[r] = append(b.speeds[r], got)
		}
	}
	return nil
}

func (b *bench) kill(ctx context.Context, l *lab, f flow) error {
	for _, c := range b.wanted() {
		if c.speedOnly {
			continue
		}
		got, err := l.killed(ctx, c, f, b.setting(c, f), b.options.kills, b.options.rate)
		if err != nil {
			return err
		}
		b.report.Progress("%-6s %-8s %d kills: %d produced, %d lost, %d twice", f.name, c.name, got.kills, got.produced, got.lost(), got.twice())
		b.audits[result{f.name, c.name}] = &got
	}
	return nil
}

// benthosVersion returns the version of Benthos that ../peers requires.
func benthosVersion() (string, error) {
	const module = "github.com/benthosdev/benthos/v4 "
	text, err := os.ReadFile(filepath.Join(peers, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("look up the version of Benthos (run this in bench/): %w", err)
	}
	_, after, found := strings.Cut(string(text), module)
	version, _, _ := strings.Cut(after, "\n")
	if !found {
		return "", fmt.Errorf("%s/go.mod does not ask for %s", peers, module)
	}
	return "Benthos " + version, nil
}
