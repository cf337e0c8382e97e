package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

// A replica is promoted that lacks the last steps of a flush, even though all these steps have reached the database. Increments that come
// after the failover must not be taken for those that the ledger has.
func TestFailoverThatUndoesStepsOfAFlushLosesNoIncrement(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		promoted := newRig(t)
		unsealed := 0
		for kept := 1; ; kept++ {
			g.Do("FLUSHALL")
			db, steps, last, sealed := newDatabase(), 0, "", false
			want := g.fillPlain(zset, 300)
			_, err := db.flush(t.Context(), plainOn(t, watched(g.store, func(step string) error {
				if steps++; steps == kept {
					promoted.redis.TakeDataOf(g.redis)
					last = step
				}
				sealed = sealed || steps <= kept && step == redistest.After("counters_seal")
				return nil
			}), PlainCountersOptions{PartRows: 125}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if steps < kept {
				break
			}
			when := fmt.Sprintf("after a failover to the state of step %d, %s", kept, last)
			same(t, "counts before it", want, db.counts())
			for i := range 40 { // some of them were gathered before the failover, and some were not
				page := fmt.Sprintf("p%d", i*7)
				promoted.sendHit(zset, page, 1000)
				want[page] += 1000
			}
			promoted.Do("")
			db.drain(t, promoted.plain(PlainCountersOptions{PartRows: 125}))
			promoted.noCounters()
			if sealed {
				same(t, "counts "+when, want, db.counts())
				continue
			}
			unsealed++
			var lost []string
			for page, got := range db.counts() {
				if got < want[page] {
					lost = append(lost, fmt.Sprintf("%s has %d of %d", page, got, want[page]))
				}
			}
			if len(lost) > 0 {
				t.Errorf("%s: increments of %d counters are lost: %.200s", when, len(lost), strings.Join(lost, ", "))
			}
		}
		if unsealed < 5 {
			t.Errorf("%d states without a sealed stage: the steps of gathering were not tried", unsealed)
		}
	})
}

// A run has sealed a stage, and then talks to a promoted replica that has only a part of the stage.
func TestStageWhoseSealingWasUndoneIsNotReadAsTheSealedOne(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	promoted := newRig(t)
	g.fillPlain(false, 300)
	gathered := false
	st := stageNow(t, plainOn(t, watched(g.store, func(step string) error {
		if step == redistest.After("counters_gather") && !gathered {
			gathered = true
			promoted.redis.TakeDataOf(g.redis)
		}
		return nil
	}), PlainCountersOptions{}), "a")
	src := promoted.plain(PlainCountersOptions{})
	err := src.Read(t.Context(), st, func(p flush.Page) error {
		t.Errorf("%d of %d counters were read as the stage", len(p.Records), st.Size)
		return nil
	})
	if !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("read: %v, want ErrStaleStage", err)
	}
	if err := src.Discard(t.Context(), st); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discard: %v, want ErrStaleStage", err)
	}
}
