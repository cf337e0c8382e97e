package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
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

// A replica is promoted that lacks the last entries that a job has read. Then entries with lower ids are added to it. They are unread, and
// as many as the lost ones, so the number of added entries shows no gap once they are trimmed.
func TestFailoverThatLosesTheAnchorTrimsNoUnreadEntry(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	for name, c := range map[string]struct {
		retain  *time.Duration
		size    int   // of an entry
		lost    []any // keys that the promoted replica has not received
		emptied bool  // the promoted replica has no entries
	}{
		"by the job itself":          {&zero, 1, nil, false},
		"of large entries":           {&zero, largeAnchor + 1, nil, false},
		"by another job later":       {nil, 1, nil, false},
		"of an emptied stream":       {&zero, 1, nil, true},
		"and its record":             {&zero, 1, []any{eventsPositions}, false},
		"and its record, untrimmed":  {nil, 1, []any{eventsPositions}, false},
		"and that of large entries":  {&zero, largeAnchor + 1, []any{eventsPositions}, false},
		"and all entries and record": {&zero, 1, []any{eventsPositions}, true},
		"and the whole stream":       {&zero, 1, []any{eventsPositions, "events"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, promoted := newRig(t), newRig(t)
			add := func(to *rig, ids ...int) {
				for _, id := range ids {
					to.Do("XADD", "events", fmt.Sprintf("%d-0", id), "n", strings.Repeat("x", c.size))
				}
			}
			db, src := newDatabase(), g.stream(StreamOptions{Retain: c.retain})
			add(g, 1, 2, 3)
			db.drain(t, src)
			add(g, 4)
			promoted.redis.TakeDataOf(g.redis)
			add(g, 10, 20)
			if _, err := db.flush(t.Context(), src, func(step string) error {
				if step == stepOfFlush+string(flushtest.StepBeforeDiscard) {
					src.Store = promoted.store
					for _, key := range c.lost {
						promoted.Do("DEL", key)
					}
					if c.emptied {
						promoted.Do("XTRIM", "events", "MAXLEN", 0)
					} else {
						add(promoted, 11, 12, 30)
					}
				}
				return nil
			}); err != nil || db.place() != "20-0 6" {
				t.Fatalf("position %q, %v", db.place(), err)
			}
			if c.emptied {
				add(promoted, 11, 12, 30)
			}
			newDatabase().drain(t, promoted.stream(StreamOptions{Job: "other", Retain: &zero}))
			if got := promoted.ids(); !strings.HasSuffix(got, "11 12 30") {
				t.Errorf("left: %s; unread entries were trimmed", got)
			}
			_, err := db.flush(t.Context(), promoted.stream(StreamOptions{}), nil)
			if !errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), "may have ids before it") {
				t.Errorf("the next run: %v, want ErrGap", err)
			}
		})
	}
}

// The replica also lacks the record of the position. A run that looks at it must not record a position that other jobs trim up to.
func TestFailoverThatLosesTheRecordRecordsNoLostPosition(t *testing.T) {
	t.Parallel()
	const before = "0-0 0" // all entries
	zero := time.Duration(0)
	for name, look := range map[string]func(s *Stream, at string) error{
		"by a transaction": func(s *Stream, at string) error {
			_, err := s.look(t.Context(), idOfNoted(at), at)
			return err
		},
		"by a script": func(s *Stream, at string) error {
			_, err := s.lookByScript(t.Context(), idOfNoted(at), at)
			return err
		},
	} {
		for what, c := range map[string]struct {
			ids  []int // of the promoted replica
			at   string
			want string
		}{
			"without its entry":   {[]int{11, 12, 30}, "20-0 3", before},
			"without entries":     {nil, "20-0 3", before},
			"with its entry":      {[]int{11, 20, 30}, "20-0 3", "20-0 3"},
			"where a job begins":  {[]int{11, 12, 30}, "20-0 0", "20-0 0"},
			"without later entry": {[]int{11, 20}, "20-0 3", "20-0 3"},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				g := newRig(t)
				for _, id := range c.ids {
					g.fillStream(id, id, nil)
				}
				src := g.stream(StreamOptions{})
				if err := look(src, c.at); err != nil {
					t.Fatal(err)
				}
				if got := g.Str("HGET", eventsPositions, "events"); got != c.want {
					t.Errorf("recorded %q, want %q", got, c.want)
				}
				if c.want != before {
					return
				}
				newDatabase().drain(t, g.stream(StreamOptions{Job: "other", Retain: &zero}))
				if got := g.ids(); got != strings.Trim(fmt.Sprint(c.ids), "[]") {
					t.Errorf("left: %s; unread entries were trimmed", got)
				}
				if n, err := g.stream(StreamOptions{}).Backlog(t.Context()); n < int64(len(c.ids)) || err != nil {
					t.Errorf("backlog %d, %v", n, err)
				}
				if got, err := g.stream(StreamOptions{}).Peek(t.Context(), 9); len(got) < len(c.ids) || err != nil {
					t.Errorf("peek: %d entries, %v", len(got), err)
				}
			})
		}
	}
}
