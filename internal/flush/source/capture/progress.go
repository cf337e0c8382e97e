package capture

import (
	"context"
	"slices"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// Progress describes how much of the streams the feed of a job has received.
type Progress struct {
	Events          []Event // since the last call of ProgressOf
	PassOwed        bool
	Pending, Budget int // bytes of the pending keys, and their limit
	Masters         []Master
}

// Master describes how much of one master's stream was received.
type Master struct {
	Address string
	// Bytes is the length of the history that the feed has not received. Behind is how long the feed has lacked a part of the history.
	Bytes  int64
	Behind time.Duration
	// BacklogUsed is the share of the master's backlog after the position in the database. If it is above 1, no leader can continue there.
	BacklogUsed float64
}

// ProgressOf returns the progress of a job's feed. It returns false if this process does not have the feed. If masters is true, it also
// asks the masters for the ends of their histories.
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

// progressAt returns the progress of the feed. For the reader of each master, the map heads contains the end of the master's history at the
// time now.
func (f *feed) progressAt(heads map[*streamReader]follow.Position, now time.Time) Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Progress{Events: f.events, PassOwed: f.passesOwed > f.passesDone, Pending: f.bytes, Budget: f.budget}
	f.events = nil
	for _, m := range f.cursors {
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

// seenHead is the end of a master's history at some time.
type seenHead struct {
	offset int64
	at     time.Time
}

// mostHeads is the maximum number of recorded ends of a master's history. If there are more, every second one is dropped.
const mostHeads = 64

// behind returns how long the feed has lacked a part of the history. This time begins when the history's end was first seen beyond the
// mark.
func (m *cursor) behind(head int64, now time.Time) time.Duration {
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

// ask asks each followed master for the end of its history. It leaves out masters that do not answer.
func (f *feed) ask(ctx context.Context) map[*streamReader]follow.Position {
	f.mu.Lock()
	var readers []*streamReader
	for _, m := range f.cursors {
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
	defer conn.Close() // returns it to the pool
	return follow.Head(ctx, conn)
}
