package capture

import (
	"context"
	"slices"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// Progress tells how far the feed of a job is.
type Progress struct {
	Events          []Event // since the last call of ProgressOf
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

// ProgressOf tells how far the feed of a job is, if this process has one. With masters it asks them for the ends of their histories.
func ProgressOf(ctx context.Context, store *redisconn.Store, job, key string, masters bool) (Progress, bool) {
	made, ok := store.Attachment(attached(job, key))
	if !ok {
		return Progress{}, false
	}
	f := made.(closer).feed
	var heads map[*streamReader]follow.Position
	if masters {
		heads = f.ask(ctx)
	}
	return f.progressAt(heads, time.Now()), true
}

// progressAt tells how far the feed is. heads are the ends of the masters' histories at a time, by their readers.
func (f *feed) progressAt(heads map[*streamReader]follow.Position, now time.Time) Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Progress{Events: f.events, PassOwed: f.debts > f.paid, Pending: f.bytes, Budget: f.budget}
	f.events = nil
	for _, m := range f.marks {
		head, ok := heads[m.reader]
		if m.reader == nil || !ok || head.ReplID != m.at.ReplID {
			continue
		}
		one := Master{Address: m.reader.server.Address(), Bytes: max(0, head.Offset-m.at.Offset), Behind: m.behind(head.Offset, now)}
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
func (f *feed) ask(ctx context.Context) map[*streamReader]follow.Position {
	f.mu.Lock()
	var readers []*streamReader
	for _, m := range f.marks {
		if m.reader != nil {
			readers = append(readers, m.reader)
		}
	}
	f.mu.Unlock()
	heads := map[*streamReader]follow.Position{}
	for _, r := range readers {
		if head, err := r.head(ctx); err == nil {
			heads[r] = head
		}
	}
	return heads
}

// head asks the master for the end of its history.
func (r *streamReader) head(ctx context.Context) (follow.Position, error) {
	conn, err := r.server.Borrow(ctx)
	if err != nil {
		return follow.Position{}, err
	}
	defer conn.Close() // it goes back to the pool
	return follow.Head(ctx, conn)
}
