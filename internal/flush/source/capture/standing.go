package capture

import (
	"context"
	"slices"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// Standing tells how far the feed of a job is.
type Standing struct {
	News            []News // since the last call of Stand
	PassOwed        bool
	Pending, Budget int // bytes of the pending keys, and their limit
	Masters         []Master
}

// Master tells how far the stream of one master was followed.
type Master struct {
	Address string
	// Bytes is how much of its history the feed has not received, Behind for how long that has been so.
	Bytes  int64
	Behind time.Duration
	// BacklogUsed is the part of the master's backlog after the place in the database: beyond 1 no leader can continue there.
	BacklogUsed float64
}

// Stand tells how far the feed of a job is, if this process has one. With masters it asks them for the ends of their histories.
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

// stands tells how far the feed is. heads are the ends of the masters' histories at a time, by their lines.
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

// seenHead is the end of a master's history at a time.
type seenHead struct {
	offset int64
	at     time.Time
}

// mostHeads bounds the kept ends of a master: above that, every other one is dropped.
const mostHeads = 64

// behind is for how long the feed has not received all of the history: since the first time that the history's end was seen
// beyond the mark.
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

// ask asks each followed master for the end of its history; one that does not answer is left out.
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
