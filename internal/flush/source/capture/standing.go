package capture

import (
	"context"
	"slices"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// Standing is how far what follows the streams for a job is.
type Standing struct {
	News            []News // since this was last asked for
	PassOwed        bool
	Pending, Budget int // bytes that the pending keys take, and may take
	Masters         []Master
}

// Master is how far the stream of one master was followed.
type Master struct {
	Address string
	// Bytes is how much of its history has not been heard of, and Behind for how long that has been so.
	Bytes  int64
	Behind time.Duration
	// BacklogUsed is the part of its backlog that is behind the place in the database: beyond 1 no leader can
	// go on from there.
	BacklogUsed float64
}

// Stand is how far what follows the stream for a job is, if anything does here. With masters it asks them where
// their histories end.
func Stand(ctx context.Context, store *redisconn.Store, job, key string, masters bool) (Standing, bool) {
	made, ok := store.Attachment(attached(job, key))
	if !ok {
		return Standing{}, false
	}
	f := made.(closer).feed
	var heads map[*line]follow.Position
	if masters {
		heads = f.ask(ctx)
	}
	return f.stands(heads, time.Now()), true
}

// stands is how far it is. heads are the ends of the histories of its masters at a time, by their line.
func (f *feed) stands(heads map[*line]follow.Position, now time.Time) Standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Standing{News: f.unread, PassOwed: f.debts > f.paid, Pending: f.bytes, Budget: f.budget}
	f.unread = nil
	for _, m := range f.marks {
		head, ok := heads[m.line]
		if m.line == nil || !ok || head.ReplID != m.at.ReplID {
			continue
		}
		one := Master{Address: m.line.server.Address(), Bytes: max(0, head.Offset-m.at.Offset), Behind: m.behind(head.Offset, now)}
		if m.backlog > 0 && m.base.ReplID == head.ReplID {
			one.BacklogUsed = float64(max(0, head.Offset-m.base.Offset)) / float64(m.backlog)
		}
		s.Masters = append(s.Masters, one)
	}
	return s
}

// seenHead is where the history of a master ended at a time.
type seenHead struct {
	offset int64
	at     time.Time
}

// mostHeads bounds those that are kept of a master: of more every other one.
const mostHeads = 64

// behind is for how long not all of the history has been heard of: since the first time at which it was seen to
// go beyond where the mark is.
func (m *mark) behind(head int64, now time.Time) time.Duration {
	m.heads = slices.DeleteFunc(m.heads, func(h seenHead) bool { return h.offset <= m.at.Offset })
	if head <= m.at.Offset {
		return 0
	}
	if len(m.heads) == mostHeads {
		i := 0
		m.heads = slices.DeleteFunc(m.heads, func(seenHead) bool { i++; return i%2 == 0 })
	}
	m.heads = append(m.heads, seenHead{head, now})
	return now.Sub(m.heads[0].at)
}

// ask asks each master that is followed for the end of its history; one that does not answer is left out.
func (f *feed) ask(ctx context.Context) map[*line]follow.Position {
	f.mu.Lock()
	var lines []*line
	for _, m := range f.marks {
		if m.line != nil {
			lines = append(lines, m.line)
		}
	}
	f.mu.Unlock()
	heads := map[*line]follow.Position{}
	for _, l := range lines {
		if head, err := l.head(ctx); err == nil {
			heads[l] = head
		}
	}
	return heads
}

// head asks the master for the end of its history.
func (l *line) head(ctx context.Context) (follow.Position, error) {
	conn, err := l.server.Borrow(ctx)
	if err != nil {
		return follow.Position{}, err
	}
	defer conn.Close() // it goes back to the pool
	return follow.Head(ctx, conn)
}
