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

// trimStep limits the entries that one command trims, and trimBytes limits approximately their bytes, because Redis serves no other client
// while the command runs. trimIDs limits the bytes of the entries that a script reads for their ids.
const trimStep, trimBytes, trimIDs = 10_000, 4 << 20, 256 << 10

var trimScript = loadScript("stream_trim", 2)

// Discard records the job's place and, if configured, trims flushed entries. It keeps entries that another job has not read, entries
// younger than Retain, and the entry at the job's position. The last of these proves to the next run that nothing was trimmed too early. If
// that entry was lost, Discard keeps all entries.
func (s *Stream) Discard(ctx context.Context, _ flush.Stage) error {
	s.mu.Lock()
	at, first := s.committed, s.staged.first
	s.mu.Unlock()
	if at == nil {
		return nil
	}
	return s.trim(ctx, *at, first)
}

// trim records the place that is in the database, and trims entries before this place. The argument first is the size of the stream's first
// entry in bytes, or 0 if the size is unknown.
func (s *Stream) trim(ctx context.Context, at place.Place, first int) error {
	retain := ""
	if s.retain != nil {
		retain = strconv.FormatInt(s.retain.Milliseconds(), 10)
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	for {
		more, err := s.note(ctx, c, at.String(), retain, first)
		if err != nil || !more {
			return s.Fail("trim", err)
		}
		if first, _, err = s.firstOf(ctx, c, "-", "+"); err != nil {
			return s.Fail("trim", err)
		}
	}
}

// note records a place. If retain is not "", note trims some entries before the place. It reports whether there may be more to trim. If the
// entry at the place was lost, note does neither: see stream_trim.lua. Lua would copy that entry. So if sizes are known, note looks for
// it just before the script, and the script looks only for a small one. In a Cluster, a failover between the two leads the script to
// another server, and then a lost large entry goes unnoticed.
func (s *Stream) note(ctx context.Context, c redisconn.Conn, at, retain string, first int) (more bool, err error) {
	look := "1"
	if id := idOfNoted(at); first > 0 {
		size, found, err := s.firstOf(ctx, c, id, id)
		if err != nil {
			return false, err
		}
		if found && size > largeAnchor {
			look = ""
		}
	}
	nodes, exact := trimSteps(first)
	return redis.Bool(trimScript.DoContext(ctx, c, s.Live, s.positions(), s.Job, at, retain, nodes, exact, look))
}

// trimSteps returns how many entries one command trims. The result nodes is the number for a command that trims only whole nodes of the
// stream. The result exact is the number for a command that trims a part of a node. Redis needs long to free large entries, so the numbers
// depend on the size of the first entry. If Redis is configured as usual, a large entry has its own node. For small entries, nodes must
// allow at least one whole node.
func trimSteps(first int) (nodes, exact int) {
	const large, node, ids = 4096, 100, 1000
	least := node
	if first > large {
		least = 1
	}
	nodes = max(least, min(trimStep, trimBytes/max(1, first)))
	return nodes, max(1, min(nodes, ids, trimIDs/max(1, first)))
}

// firstOf looks for the first entry of a range, and returns its size in bytes. The size is 0 if there is none, and if this server does not
// report it.
func (s *Stream) firstOf(ctx context.Context, c redisconn.Conn, from, to string) (size int, found bool, err error) {
	q := questionOf(redisconn.Cmd("XRANGE", s.Live, from, to, "COUNT", 1))
	q.Brief = func(int) bool { return true }
	q.Read = func(a *redisconn.Answers) error {
		if entries, _ := a.Briefs[0].([]any); len(entries) > 0 {
			_, size, _ = place.EntryOf(entries[0])
			found = true
		}
		return nil
	}
	err = c.Ask(ctx, q)
	return size, found, err
}

// Backlog counts the entries after the job's recorded place. It never counts too few. It counts too many entries until the end of a run,
// and if entries before the position were deleted. A Redis before 7.0 does not count added entries. With such a Redis, Backlog is 0 for a
// job at the end of the stream, and otherwise the number of all entries.
func (s *Stream) Backlog(ctx context.Context) (int64, error) {
	at, l, err := s.noted(ctx)
	if err != nil {
		return 0, err
	}
	return l.Pending(at), nil
}

// noted looks at the stream from the job's recorded place, from a later place that this process has committed, or from the place where the
// job will begin.
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
		if known == nil || known.ID.Compare(at.ID) <= 0 { // another node may have moved the recorded place since then
			return at, l, nil
		}
		at = *known
	case known != nil:
		at = *known
	case s.start == startEnd: // before the job begins, no entry is pending
		return at, place.Look{}, nil
	default:
		at = place.Place{ID: s.startID}
	}
	l, err = s.look(ctx, at.ID.String(), "")
	return at, l, err
}

// Peek reads the first n pending entries, from the job's recorded place on. It changes nothing.
func (s *Stream) Peek(ctx context.Context, n int) ([]row.Record, error) {
	at, l, err := s.noted(ctx)
	if err != nil || n < 1 || l.Behind == (place.ID{}) {
		return nil, err
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // returns it to the pool
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

// rewound reports whether the stream was created again, or has lost entries before an id. In these cases new entries may have lower ids, so
// a reader that waits for entries after that id would not wake up.
func (s *Stream) rewound(ctx context.Context, id place.ID) (bool, error) {
	l, err := s.look(ctx, id.String(), "")
	return l.Exists && l.Last.Compare(id) < 0, err
}

// Wait returns when there are entries after the last committed entry, when ctx has ended, or when the stream ends before that entry. It may
// return earlier. It uses a blocking command, and changes nothing.
func (s *Stream) Wait(ctx context.Context) error {
	s.mu.Lock()
	at := s.committed
	s.mu.Unlock()
	if at == nil {
		return nil // the position is unknown, so a run must find out whether there are entries
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
