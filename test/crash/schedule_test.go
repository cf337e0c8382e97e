package crash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"baton/internal/flush"
)

// Producers, flushes, crashes at any step, restarts and deposed leaders come in any order. The test checks that the table equals the
// written data when a node has flushed the rest.
func TestAnyScheduleOfWritesCrashesAndLeadersIsExact(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		all := kinds()
		if l.name == inPool && !everything() {
			all = []kind{counters, stream} // one kind with a ledger, one kind with a position
		}
		for _, k := range all {
			t.Run(string(k), func(t *testing.T) {
				rapid.Check(t, func(r *rapid.T) { newShow(t, l, k).play(r) })
			})
		}
	})
}

// show is one random schedule.
type show struct {
	*cell
	leading *node
	own     *stores // the stores whose steps the show observes
	writes  int64

	mu      sync.Mutex
	crashes int // the run ends after this number of steps, unless it is 0
	passed  int
}

func newShow(t *testing.T, l *lab, k kind) *show {
	s := &show{cell: l.cell(t, k)}
	s.createTable()
	s.own = l.open(t, l.spec("schedule"), func(b boundary) error {
		if b.Layer == "sql" {
			return nil // the flush tries such a transaction again
		}
		return s.observe(b)
	})
	return s
}

func (s *show) play(r *rapid.T) {
	s.removeEvery = rapid.SampledFrom([]time.Duration{1, time.Hour}).Draw(r, "remove every")
	s.lead()
	r.Repeat(map[string]func(*rapid.T){
		"write": s.write,
		"flush": func(r *rapid.T) { s.must(r, s.leading.flush(s.t.Context())) },
		"crash": s.crash,
		"depose": func(r *rapid.T) {
			old := s.leading
			s.expire()
			s.lead()
			s.write(r)
			s.must(r, s.leading.flush(s.t.Context()))
			if err := old.flush(s.t.Context()); err != nil && !errors.Is(err, flush.ErrFenced) {
				r.Fatalf("the deposed leader's run ended with %v", err)
			}
			_ = old.release(s.t.Context()) // this closes the connection of the leader
		},
	})
	s.must(r, s.leading.flush(s.t.Context()))
	if found := s.problems(); len(found) > 0 {
		r.Fatalf("%s %q", s.kind, found)
	}
	s.release(s.leading)
}

func (s *show) must(r *rapid.T, err error) {
	if err != nil {
		r.Fatalf("a run of a sound leader failed: %v", err)
	}
}

// lead makes a new process that leads, regardless of the previous leader.
func (s *show) lead() { s.leading = s.leader("node", s.own, s.observe) }

// observe ends a run at the drawn step.
func (s *show) observe(boundary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashes == 0 {
		return nil
	}
	if s.passed++; s.passed >= s.crashes {
		return errStop
	}
	return nil
}

// crash flushes up to a step of the flush or of its source. Then the process no longer exists.
func (s *show) crash(r *rapid.T) {
	s.arm(rapid.IntRange(1, 60).Draw(r, "step"))
	err := s.leading.flush(s.t.Context())
	s.arm(0)
	if err != nil && !errors.Is(err, errStop) && !errors.Is(err, context.Canceled) {
		r.Fatalf("the run was to end at a step, and ended with %v", err)
	}
	s.expire()
	_ = s.leading.release(s.t.Context()) // this closes the connection of the leader
	s.lead()
}

func (s *show) arm(step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes, s.passed = step, 0
}

// write writes a few times as the kind's producers do.
func (s *show) write(r *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(r, "writes") {
		s.writes++
		i := rapid.Int64Range(0, 60).Draw(r, "id")
		switch s.kind.fixture().table {
		case "counts":
			s.add(i, rapid.Int64Range(1, 9).Draw(r, "n"))
		case "people", "boards":
			if rapid.IntRange(0, 5).Draw(r, "gone") == 0 {
				s.gone(i)
			} else {
				s.change(i, fmt.Sprint("write ", s.writes), fmt.Sprint(i))
			}
		default:
			if s.events < 800 {
				s.event(fmt.Sprint("write ", s.writes), "7")
			}
		}
	}
	s.flushed()
}
