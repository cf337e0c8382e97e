package flush_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// event sets the name of a user. The last event for a user counts.
type event struct{ id, name string }

// queue is a list, or a stream, of events.
type queue struct {
	events []event // all events that ever came
	// of the list: items before begin were removed, and items before end are staged
	id                string
	begin, end, taken int
}

func (m *memory) push(id, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.events = append(m.queue.events, event{id, name})
}

// latest returns the rows that the table must have after all events.
func (m *memory) latest() map[string]string {
	out := map[string]string{}
	for _, e := range m.queue.events {
		out[e.id] = e.name
	}
	return out
}

// queue returns the configuration of a job that flushes events with two lanes.
func (w *world) queue(cfg flush.Config, f *faults) flush.Config {
	cfg.Lanes = 2
	cfg.Inputs = row.Inputs{Names: []string{"id", "name"}, Guarantee: row.ByLedger}
	if w.kind == "stream" {
		cfg.Inputs.Guarantee = row.ByPosition
	}
	cfg.Mapping = mapping.Spec{Table: "users", Key: []string{"id"}}
	cfg.NewSources = func(inputs []string) ([]flush.Source, error) {
		q := fakeQueue{w.mem, f, inputs}
		if w.kind == "stream" {
			return []flush.Source{&fakeStream{fakeQueue: q}}, nil
		}
		return []flush.Source{&fakeList{q}}, nil
	}
	return cfg
}

type fakeQueue struct {
	*memory
	*faults
	inputs []string
}

func (s *fakeQueue) records(from, to int) (records []row.Record) {
	for _, e := range s.queue.events[from:to] {
		records = append(records, recordFrom(s.inputs, e.id, map[string]string{"id": e.id, "name": e.name}))
	}
	return records
}

// fakeList is cut into parts that leave it at its head, one after the other.
type fakeList struct{ fakeQueue }

func (s *fakeList) Name() string { return "list" }

func (s *fakeList) Stage(_ context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	err = s.around("stage", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		q := &s.queue
		resumed := q.begin < q.end
		if !resumed {
			if q.end == len(q.events) {
				return nil
			}
			q.id, q.end, q.taken = newID, len(q.events), 0
		}
		left := q.end - q.begin
		st, ok = flush.Stage{
			ID: q.id, Parts: q.taken + (left+fakePage-1)/fakePage, Size: int64(left), Resumed: resumed && q.id != newID,
		}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeList) Read(_ context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.memory.mu.Lock()
	part, at := s.queue.taken, s.queue.begin
	s.memory.mu.Unlock()
	for ; part < st.Parts; part++ {
		p := flush.Page{Part: part, Lane: flush.InOrder}
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			if s.queue.id != st.ID || s.queue.taken > part {
				return flush.ErrStaleStage
			}
			to := min(at+fakePage, s.queue.end)
			p.Records, at = s.records(at, to), to
			return nil
		})
		if err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeList) Done(_ context.Context, st flush.Stage, p flush.Page) error {
	return s.around("done", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		q := &s.queue
		switch {
		case q.id != st.ID:
			return flush.ErrStaleStage
		case p.Part > q.taken:
			return errors.New("a part is to leave the list before the one before it")
		case p.Part == q.taken:
			q.taken++
			q.begin = min(q.begin+fakePage, q.end)
		}
		return nil
	})
}

func (s *fakeList) Discard(_ context.Context, st flush.Stage) error {
	return s.around("discard", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.queue.id != st.ID {
			return flush.ErrStaleStage
		}
		if s.queue.begin == s.queue.end {
			s.queue.id = ""
		}
		return nil
	})
}

func (s *fakeList) Backlog(context.Context) (int64, error) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return int64(len(s.queue.events) - s.queue.begin), nil
}

// fakeStream has its position in the database. No entry ever leaves the stream.
type fakeStream struct {
	fakeQueue
	begin, end int // of the staged entries
}

func (s *fakeStream) Name() string { return "stream" }

func (s *fakeStream) Stage(_ context.Context, newID, position string) (st flush.Stage, ok bool, err error) {
	err = s.around("stage", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		s.begin, _ = strconv.Atoi(position)
		s.end = len(s.queue.events)
		st, ok = flush.Stage{ID: newID}, s.begin < s.end
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeStream) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	for at := s.begin; at < s.end; {
		to := min(at+fakePage, s.end)
		p := flush.Page{Part: -1, Lane: flush.InOrder, Move: &flush.Move{From: fmt.Sprint(at), To: fmt.Sprint(to)}}
		if at == 0 {
			p.Move.From = ""
		}
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			p.Records = s.records(at, to)
			return nil
		})
		if err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
		at = to
	}
	return nil
}

func (s *fakeStream) Done(context.Context, flush.Stage, flush.Page) error {
	return s.around("done", func() error { return nil })
}

func (s *fakeStream) Discard(context.Context, flush.Stage) error {
	return s.around("discard", func() error { return nil })
}

func (s *fakeStream) Backlog(context.Context) (int64, error) { return 0, nil }
