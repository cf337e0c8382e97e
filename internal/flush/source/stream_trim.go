package source

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/place"
	"baton/internal/redisconn"
)

// trimStep and trimBytes are the entries that one command trims, and about how long they are
// together: Redis serves no other client meanwhile. trimIDs is how long those are that a script reads, for their ids.
const trimStep, trimBytes, trimIDs = 10_000, 4 << 20, 256 << 10

var trimScript = loadScript("stream_trim", 2)

// Discard records the job's place and, if configured, trims flushed entries: none that another job
// has not read, none younger than Retain, and not the one at the position, which proves to the next
// run that nothing was trimmed too early.
func (s *Stream) Discard(ctx context.Context, _ flush.Stage) error {
	s.mu.Lock()
	at, first := s.committed, s.staged.first
	s.mu.Unlock()
	if at == nil {
		return nil
	}
	return s.trim(ctx, *at, first)
}

// trim notes that the database is at a place, and trims behind it. first is the bytes of the stream's first entry; 0 for unknown.
func (s *Stream) trim(ctx context.Context, at place.Place, first int) error {
	retain := ""
	if s.retain != nil {
		retain = strconv.FormatInt(s.retain.Milliseconds(), 10)
	}
	for {
		more, err := s.note(ctx, at.String(), retain, first)
		if err != nil || !more {
			return err
		}
		if first, err = s.firstSize(ctx); err != nil {
			return err
		}
	}
}

// note has a place noted, and trims some entries behind it if it is told how long entries stay. It says whether there
// may be more.
func (s *Stream) note(ctx context.Context, place, retain string, first int) (more bool, err error) {
	nodes, exact := trimSteps(first)
	return redis.Bool(s.Script(ctx, "trim", trimScript, s.Live, s.positions(), s.Job, place, retain, nodes, exact))
}

// trimSteps are how many entries one command trims: whole nodes of the stream, and of the one that must not go as a whole. To free
// a large entry takes long. How many fit the first one tells: a large entry has a node of its own, if Redis is
// configured as usual; of small ones there must be no fewer than a node has.
func trimSteps(first int) (nodes, exact int) {
	const large, node, ids = 4096, 100, 1000
	least := node
	if first > large {
		least = 1
	}
	nodes = max(least, min(trimStep, trimBytes/max(1, first)))
	return nodes, max(1, min(nodes, ids, trimIDs/max(1, first)))
}

// firstSize is the bytes of the stream's first entry; 0 if there is none, or this server does not tell.
func (s *Stream) firstSize(ctx context.Context) (size int, err error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return 0, err
	}
	defer c.Close() // it goes back to the pool
	q := questionOf(redisconn.Cmd("XRANGE", s.Live, "-", "+", "COUNT", 1))
	q.Brief = func(int) bool { return true }
	q.Read = func(a *redisconn.Answers) error {
		if entries, _ := a.Briefs[0].([]any); len(entries) > 0 {
			_, size, _ = place.EntryOf(entries[0])
		}
		return nil
	}
	err = c.Ask(ctx, q)
	return size, s.Fail("trim", err)
}

// Backlog counts the entries that the job has not read, from where it is noted to be:
// never too few, and too many until the end of a run, and where entries behind the
// position were deleted. A Redis before 7.0 does not count entries: there it is 0 at
// the end of the stream, else all there are.
func (s *Stream) Backlog(ctx context.Context) (int64, error) {
	at, l, err := s.noted(ctx)
	if err != nil {
		return 0, err
	}
	return l.Pending(at), nil
}

// noted looks from where the job is noted to be, or has got since, or will begin.
func (s *Stream) noted(ctx context.Context) (at place.Place, l place.Look, err error) {
	if l, err = s.look(ctx, "", ""); err != nil {
		return at, l, err
	}
	s.mu.Lock()
	known := s.committed
	s.mu.Unlock()
	switch {
	case l.Noted != "":
		if at, err = place.Parse(l.Noted); err != nil {
			return at, l, s.Fail("find where the job is in", err)
		}
		if known == nil || known.ID.Compare(at.ID) <= 0 { // somebody else may have led since
			return at, l, nil
		}
		at = *known
	case known != nil:
		at = *known
	case s.start == startEnd: // nothing counts until the job begins
		return at, place.Look{}, nil
	default:
		at = place.Place{ID: s.startID}
	}
	l, err = s.look(ctx, at.ID.String(), "")
	return at, l, err
}

// Peek reads the first n entries that are pending, from where the job is noted to be.
// It changes nothing.
func (s *Stream) Peek(ctx context.Context, n int) ([]row.Record, error) {
	at, l, err := s.noted(ctx)
	if err != nil || n < 1 || l.Behind == (place.ID{}) {
		return nil, err
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // it goes back to the pool
	entries := newEntries(s.inputs, s.bytes)
	var records []row.Record
	for from := at.ID; len(records) < n; from = entries.last {
		want := 1 + min(entries.pace.Depth(), n-len(records))
		if records, err = entries.read(ctx, c, records, s.Live, from, "+", want); err != nil {
			return nil, s.Fail("look into", err)
		}
		if entries.found < want {
			break
		}
	}
	return records[:min(n, len(records))], nil
}

// rewound reports whether the stream was made anew, or has lost entries, before an id:
// nothing that is added there would ever wake who waits behind it.
func (s *Stream) rewound(ctx context.Context, id place.ID) (bool, error) {
	l, err := s.look(ctx, id.String(), "")
	return l.Exists && l.Last.Compare(id) < 0, err
}

// Wait returns when there are entries behind the one that was committed last, or ctx
// has ended, or when the stream ends before that one, and perhaps earlier. It blocks, and changes nothing.
func (s *Stream) Wait(ctx context.Context) error {
	s.mu.Lock()
	at := s.committed
	s.mu.Unlock()
	if at == nil {
		return nil // Stage will tell
	}
	err := s.Store.Block(ctx, s.Live, func(c redis.Conn, atMost time.Duration) (bool, error) {
		_, err := redis.Values(redis.DoContext(c, ctx, "XREAD", "COUNT", 1, "BLOCK", max(1, atMost.Milliseconds()), "STREAMS", s.Live,
			at.ID.String()))
		if errors.Is(err, redis.ErrNil) {
			return s.rewound(ctx, at.ID)
		}
		return true, err
	})
	return s.Fail("wait for work in", err)
}
