package demo

import (
	"sync"
	"time"
)

// user is a row of the table users, as the generator last wrote it.
type user struct {
	name, note string
	version    int64 // number of the change, over all users
	deleted    bool
}

// amount counts increments of counters and changes of hashes.
type amount struct {
	Counters int64 `json:"counters"`
	Hashes   int64 `json:"hashes"`
}

// expected is what must be in the tables when everything is flushed. It changes
// only by writes that Redis has acknowledged.
type expected struct {
	mu      sync.Mutex
	counts  map[string]int64
	users   map[int64]user
	written amount
	history []mark
}

// mark is how many increments had been written at a moment.
type mark struct {
	at       time.Time
	counters int64
}

func newExpected() *expected {
	return &expected{counts: map[string]int64{}, users: map[int64]user{}}
}

// add takes in a batch that Redis has.
func (e *expected) add(b batch, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, article := range b.counts {
		e.counts[article]++
	}
	for _, c := range b.changes {
		e.users[c.id] = c.user
	}
	e.written.Counters += int64(len(b.counts))
	e.written.Hashes += int64(len(b.changes))
	e.history = append(e.history, mark{now, e.written.Counters})
}

// total is how much was written.
func (e *expected) total() amount {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// lag is about how long ago the oldest increment was written that is not among
// the flushed ones, if they were flushed in the order of writing.
func (e *expected) lag(flushed int64, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	done := 0
	for done < len(e.history) && e.history[done].counters <= flushed {
		done++
	}
	e.history = e.history[done:]
	if len(e.history) == 0 {
		return 0
	}
	return now.Sub(e.history[0].at)
}

// waiting is how many users' rows are not as last written.
func (e *expected) waiting(rows map[int64]user) (n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, want := range e.users {
		if got, there := rows[id]; there == want.deleted || there && got.version != want.version {
			n++
		}
	}
	return n
}
