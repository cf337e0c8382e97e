package flush_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// ordered returns pages of one user each that must be committed in their order.
func ordered(pages int) []flush.Page {
	var out []flush.Page
	for i := range pages {
		p := user(fmt.Sprint(i), "Ann")
		p.Lane = flush.InOrder
		out = append(out, p)
	}
	return out
}

// slowly is a database that needs some time to write a batch, before the batch's turn.
type slowly struct {
	*fakeSink
	takes func(id int64, ahead bool) time.Duration
	fails func(id int64) error

	mu      sync.Mutex
	applied []string
}

func (s *slowly) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	rows := b.Rows
	if len(rows) == 0 {
		rows = b.Late
	}
	id := rows[0].Values[0].Int()
	time.Sleep(s.takes(id, b.AwaitTurn != nil))
	if err := s.fails(id); err != nil {
		return flush.Outcome{}, err
	}
	out, err := s.fakeSink.Apply(ctx, f, p, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.applied = append(s.applied, fmt.Sprint(id))
	} else {
		s.applied = append(s.applied, fmt.Sprint(id, "!"))
	}
	return out, err
}

// inCommitOrder runs a job over these pages, which the database writes slowly.
func inCommitOrder(t *testing.T, lanes int, pages []flush.Page, change func(*slowly)) (applied string, calls []string, err error) {
	t.Helper()
	s := flushtest.NewScript("s", pages...)
	cfg, _ := users(s)
	db := &slowly{
		fakeSink: cfg.Sink.(*fakeSink), fails: func(int64) error { return nil },
		takes: func(int64, bool) time.Duration { return time.Second },
	}
	if change != nil {
		change(db)
	}
	cfg.Sink, cfg.Lanes = db, lanes
	_, err = mustNew(t, cfg).Run(t.Context(), leader(1))
	return strings.Join(db.applied, " "), s.Calls(), err
}

func TestPagesInOrderAreWrittenTogetherAndCommittedInOrder(t *testing.T) {
	for lanes, want := range map[int]time.Duration{1: 9 * time.Second, 2: 5 * time.Second, 3: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			applied, _, err := inCommitOrder(t, lanes, ordered(9), nil)
			if err != nil || applied != "0 1 2 3 4 5 6 7 8" {
				t.Errorf("%d lanes: applied %s, %v", lanes, applied, err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%d lanes took %v, want %v", lanes, took, want)
			}
		})
	}
}

// The second page is written immediately. It must still be committed after the first one.
func TestAFastPageWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied, _, err := inCommitOrder(t, 2, ordered(2), func(s *slowly) {
			s.takes = func(id int64, _ bool) time.Duration { return time.Duration(1-id) * 50 * time.Millisecond }
		})
		if err != nil || applied != "0 1" {
			t.Errorf("applied %s, %v", applied, err)
		}
	})
}

// The first page may wait for rows that the second page has locked. Then the second page gives way and is written again after the first.
// For a while no page is begun ahead.
func TestAPageThatHoldsUpTheOneBeforeGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		applied, _, err := inCommitOrder(t, 2, ordered(4), func(s *slowly) {
			free := make(chan struct{})
			s.takes = func(id int64, ahead bool) time.Duration {
				switch {
				case id == 0:
					<-free // held by the next page
				case id == 1 && ahead:
					time.AfterFunc(350*time.Millisecond, func() { close(free) })
				}
				return 0
			}
		})
		if err != nil || applied != "1! 0 1 2 3" {
			t.Errorf("applied %s, %v", applied, err)
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// The database sees that two pages block each other. It rolls back the first page at every attempt, because the first page has done less
// work. The run fails, and the next run must not begin the second page ahead again.
func TestAPageThatIsRolledBackForOneAheadIsWrittenByTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := users(flushtest.NewScript("s", ordered(3)...))
		var writing atomic.Bool
		deadlock := fmt.Errorf("%w: deadlock", flush.ErrTransient)
		cfg.Sink, cfg.Lanes = &slowly{
			fakeSink: cfg.Sink.(*fakeSink),
			takes: func(id int64, ahead bool) time.Duration {
				if id != 1 || !ahead {
					return 10 * time.Millisecond
				}
				writing.Store(true)
				time.AfterFunc(time.Minute, func() { writing.Store(false) })
				return time.Minute
			},
			fails: func(id int64) error {
				if id == 0 && writing.Load() {
					return deadlock
				}
				return nil
			},
		}, 2
		p := mustNew(t, cfg)
		if _, err := p.Run(t.Context(), leader(1)); !errors.Is(err, flush.ErrTransient) {
			t.Errorf("the first run ended with %v: what was tested?", err)
		}
		if got, err := p.Run(t.Context(), leader(1)); err != nil || got.Rows != 3 {
			t.Errorf("the second run: %+v, %v", got, err)
		}
	})
}

func TestNothingBehindAPageThatFailsIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk full")
		applied, calls, err := inCommitOrder(t, 3, ordered(9), func(s *slowly) {
			s.fails = func(id int64) error { return map[int64]error{4: broken}[id] }
			s.takes = func(id int64, _ bool) time.Duration { return time.Duration(20-id) * time.Millisecond }
		})
		if !errors.Is(err, broken) || strings.Count(err.Error(), broken.Error()) != 1 {
			t.Errorf("run ended with %v", err)
		}
		for _, id := range []string{"4", "5", "6", "7", "8"} {
			if strings.Contains(applied+" ", id+" ") {
				t.Errorf("applied %s", applied)
			}
		}
		if got := strings.Join(calls, " "); got != "stage done done done done" {
			t.Errorf("source was asked %s", got)
		}
	})
}

// A page without rows also has its turn, because later pages must not overtake earlier pages.
func TestAnEmptyPageKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := ordered(5)
		pages[1].Records, pages[3].Records = nil, nil
		applied, calls, err := inCommitOrder(t, 2, pages, func(s *slowly) {
			s.takes = func(id int64, _ bool) time.Duration { return time.Duration(9-id) * 10 * time.Millisecond }
		})
		if err != nil || applied != "0 2 4" || len(calls) != 7 {
			t.Errorf("applied %s, %v after %q", applied, err, calls)
		}
	})
}

// Rows of a page are late only if an earlier page also has rows with these keys.
func TestRowsThatPagesShareAreWrittenInTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := ordered(3)
		for i, ids := range []string{"1 2 3", "3 4", "1 4 5"} {
			pages[i].Records = nil
			for id := range strings.FieldsSeq(ids) {
				pages[i].Records = append(pages[i].Records, user(id, fmt.Sprint("page ", i)).Records...)
			}
		}
		cfg, db := users(flushtest.NewScript("s", pages...))
		sink := cfg.Sink.(*fakeSink)
		var mu sync.Mutex
		late := map[int64]string{}
		cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
			ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			var ids []string
			for _, r := range b.Late {
				ids = append(ids, fmt.Sprint(r.Values[0].Int()))
			}
			if b.AwaitTurn != nil {
				mu.Lock()
				late[b.Rows[len(b.Rows)-1].Values[0].Int()] = strings.Join(ids, " ")
				mu.Unlock()
			}
			time.Sleep(time.Second)
			return sink.Apply(ctx, f, p, b)
		}}
		cfg.Lanes = 3
		if _, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(late) != "map[4:3 5:1 4]" {
			t.Errorf("late, by the last row that is not: %v", late)
		}
		if got := fmt.Sprint(db.Rows("users", "name")); got != "map[1:page 2 2:page 0 3:page 1 4:page 2 5:page 2]" {
			t.Errorf("table is %s", got)
		}
	})
}
