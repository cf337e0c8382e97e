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

// ordinary is how many faults a design meets in an ordinary test run, in which only two
// are tested; CHAOS_FAULTS asks for more, and for every design.
const ordinary = 5

// checkWithin is how long the search for a legal order of the operations may take.
const checkWithin = 2 * time.Minute

// The lock is linearizable, epochs only ever rise, trust windows never overlap, and after
// every fault somebody leads, whatever is killed, frozen, restarted or cut.
func TestLinear(t *testing.T) {
	faults, seed, strict := nemesis.Asked(t, ordinary)
	drawn := 1 + int(seed)%(len(designs)-1) // beside the first
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

// sawEnough makes sure that the test was one: that clocks did step, and that there were
// terms to break.
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

// slackOf is by how much later somebody may lead on a busy machine.
func slackOf(strict bool) time.Duration {
	const own = 500 * time.Millisecond // the nodes themselves keep two cores busy
	if strict {
		return own
	}
	return own + 10*lease // other tests share them: that a node leads again is all that is judged
}

// judge holds the records against the promises.
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
