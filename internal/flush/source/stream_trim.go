package source

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// trimStep and trimBytes are the entries that one command trims, and about how long they are
// together: Redis serves no other client meanwhile.
const trimStep, trimBytes = 10_000, 4 << 20

var trimScript = loadScript("stream_trim", 2)

// Discard records the job's place and, if configured, trims flushed entries: none that another job
// has not read, none younger than Retain, and not the one at the position, which proves to the next
// run that nothing was trimmed too early.
func (s *Stream) Discard(ctx context.Context, _ flush.Stage) error {
	s.mu.Lock()
	at := s.committed
	s.mu.Unlock()
	if at == nil {
		return nil
	}
	return s.trim(ctx, *at)
}

// trim notes that the database is at a place, and trims behind it.
func (s *Stream) trim(ctx context.Context, at streamPlace) error {
	retain := ""
	if s.retain != nil {
		retain = strconv.FormatInt(s.retain.Milliseconds(), 10)
	}
	for {
		trimmed, err := redis.Int(s.Script(ctx, "trim", trimScript, s.Live, s.positions(), s.Job, at.String(), retain, trimStep, trimBytes))
		if err != nil {
			return err
		}
		if trimmed == 0 {
			return nil
		}
	}
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
	return l.pending(at), nil
}

// noted looks from where the job is noted to be, or has got since, or will begin.
func (s *Stream) noted(ctx context.Context) (at streamPlace, l look, err error) {
	if l, err = s.look(ctx, "", ""); err != nil {
		return at, l, err
	}
	s.mu.Lock()
	known := s.committed
	s.mu.Unlock()
	switch {
	case l.noted != "":
		if at, err = parsePlace(l.noted); err != nil {
			return at, l, s.Fail("find where the job is in", err)
		}
		if known == nil || known.id.compare(at.id) <= 0 { // somebody else may have led since
			return at, l, nil
		}
		at = *known
	case known != nil:
		at = *known
	case s.start == startEnd: // nothing counts until the job begins
		return at, look{}, nil
	default:
		at = streamPlace{id: s.startID}
	}
	l, err = s.look(ctx, at.id.String(), "")
	return at, l, err
}

// Peek reads the first n entries that are pending, from where the job is noted to be.
// It changes nothing.
func (s *Stream) Peek(ctx context.Context, n int) ([]row.Record, error) {
	at, l, err := s.noted(ctx)
	if err != nil || n < 1 || l.behind == (entryID{}) {
		return nil, err
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // it goes back to the pool
	entries := newEntries(s.inputs, s.bytes)
	var records []row.Record
	for from := at.id; len(records) < n; from = entries.last {
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
func (s *Stream) rewound(ctx context.Context, id entryID) (bool, error) {
	l, err := s.look(ctx, id.String(), "")
	return l.exists && l.last.compare(id) < 0, err
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
			at.id.String()))
		if errors.Is(err, redis.ErrNil) {
			return s.rewound(ctx, at.id)
		}
		return true, err
	})
	return s.Fail("wait for work in", err)
}
