package linear

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"baton/internal/testsupport/nemesis"
	"baton/test/linear/wire"
)

// ordinary is the number of faults of a design in an ordinary test run, which tests only two designs. With CHAOS_FAULTS a run has more
// faults, and tests every design.
const ordinary = 5

// checkWithin limits the time to search for a legal order of the operations.
const checkWithin = 2 * time.Minute

// The test checks that the lock is linearizable, epochs only rise, trust windows never overlap, and a node leads after every fault. The
// faults kill, freeze, restart and disconnect nodes and servers.
func TestLinear(t *testing.T) {
	faults, seed, strict := nemesis.Asked(t, ordinary)
	drawn := 1 + int(seed)%(len(designs)-1) // in addition to the first design
	for i, d := range designs {
		if !strict && i != 0 && i != drawn {
			continue
		}
		t.Run(string(d.design), func(t *testing.T) {
			if !strict {
				t.Parallel()
			}
			fmt.Printf("%s: %d faults with CHAOS_SEED=%d\n", d.design, faults, seed)
			g := d.ground(t)
			l := newLab(t, d.design, g, seed)
			l.rage(schedule(seed, faults, slices.Concat(common, g.traits())))
			time.Sleep(quiet)
			slack := slackOf(strict)
			l.awaitLeader(2*lease + slack)
			end := now()
			l.retire()
			if strict {
				l.sawEnough(faults)
			}
			l.judge(slack, seed, end)
		})
	}
}

// sawEnough fails the test if the test was too easy: clocks must have stepped, and there must have been terms to break.
func (l *lab) sawEnough(faults int) {
	for kind, hours := range map[kind]int{clockAhead: 1, clockBehind: -1} {
		drawn := slices.ContainsFunc(l.strikes, func(s *strike) bool { return s.kind == kind && s.lasts > lease })
		if drawn && !l.history.stepped[hours] {
			l.wrong("%s was drawn, but no node has ever seen it", kind)
		}
	}
	meddled := slices.ContainsFunc(l.history.operations, func(o operation) bool {
		return o.meddles && o.op == wire.Renew && o.outcome == wire.Lost
	})
	if !meddled {
		l.wrong("nobody was refused what he may not ask")
	}
	if least := faults / 8; len(l.history.terms) < least {
		l.wrong("there were %d terms only: %d faults should meet %d at least", len(l.history.terms), faults, least)
	}
}

// slackOf returns the additional time after which a node must lead on a busy machine.
func slackOf(strict bool) time.Duration {
	const own = 500 * time.Millisecond // the nodes themselves keep two cores busy
	if strict {
		return own
	}
	return own + 10*lease // other tests use the same cores, so the test checks only that a node leads again
}

// judge checks the records against the promises of the lock and the elector.
func (l *lab) judge(slack time.Duration, seed uint64, end int64) {
	shared, wrongs := overlaps(l.history.terms)
	wrongs = append(wrongs, rising(l.history.terms)...)
	recovered, late := recoveries(l.calms(end, slack), l.history.terms)
	wrongs = append(wrongs, late...)
	for _, w := range wrongs[:min(20, len(wrongs))] {
		l.wrong("%s", w)
	}
	ttl := lease - l.ground.margin()
	history := forPorcupine(l.history.operations)
	began := time.Now()
	result := porcupine.CheckOperationsTimeout(model(ttl), history, checkWithin)
	took := time.Since(began)
	var visual func(string) error
	if result != porcupine.Ok {
		l.wrong("the history of %d operations is %s", len(history), result)
		visual = func(path string) error {
			_, info := porcupine.CheckOperationsVerbose(model(ttl), history, checkWithin)
			return porcupine.VisualizePath(model(ttl), info, path)
		}
	}
	l.report(fmt.Sprintf("%d operations in %v: %s", len(history), took.Round(time.Millisecond), result), recovered, shared)
	l.keep(seed, visual)
}
