package demo

import (
	"maps"
	"sync"
	"time"
)

// user contains the values of a user that the generator has written last. The user's row in the table users must have these values.
type user struct {
	name, note string
	version    int64 // number of the change, counted over all users
	deleted    bool
}

// amount counts two things: increments of counters, and changes of hashes.
type amount struct {
	Counters int64 `json:"counters"`
	Hashes   int64 `json:"hashes"`
}

// damage counts the rows and increments of a table that are lost, and those that were written twice.
type damage struct {
	lost  int64 // missing increments, and rows that are missing or stale
	twice int64 // surplus increments, and rows that were not written
}

// expected is the content that the tables must have when everything is flushed. It changes only when Redis acknowledges a write.
type expected struct {
	mu      sync.Mutex
	counts  map[string]int64
	users   map[int64]user
	written amount
	asked   *batch // a batch that Redis may have executed but has not acknowledged
	history []mark
	settled []snapshot // the oldest snapshot is first
}

// mark records how many increments had been written at one moment.
type mark struct {
	at       time.Time
	counters int64
}

// snapshot is the expected content of the tables at one moment.
type snapshot struct {
	served time.Duration // how long the nodes had been flushing at that moment
	counts map[string]int64
	users  map[int64]user
}

func newExpected() *expected {
	return &expected{counts: map[string]int64{}, users: map[int64]user{}}
}

// ask records a batch before it is sent to Redis.
func (e *expected) ask(b batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = &b
}

// add records a batch that Redis has acknowledged.
func (e *expected) add(b batch, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = nil
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

// total returns how many increments and changes Redis has acknowledged.
func (e *expected) total() amount {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// lag returns approximately the age of the oldest increment that is not flushed, assuming that increments are flushed in the order of
// writing.
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

// waiting returns two numbers: how many increments are missing in the tables, and how many users have a row that differs from the
// generator's last write.
func (e *expected) waiting(counts map[string]int64, rows map[int64]user) (n amount) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for article, want := range e.counts {
		n.Counters += max(0, want-counts[article])
	}
	for id, want := range e.users {
		if got, there := rows[id]; there == want.deleted || there && got.version != want.version {
			n.Hashes++
		}
	}
	return n
}

// remember records the present expected content. The tables must contain this content when the nodes have been able to flush for the
// duration settleAfter from now on.
func (e *expected) remember(served time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled = append(e.settled, snapshot{served, maps.Clone(e.counts), maps.Clone(e.users)})
	for len(e.settled) > 1 && e.settled[1].served <= served-settleAfter {
		e.settled = e.settled[1:]
	}
}

// damaged compares tables, which were read a moment ago, with their expected content. It records damaged counters in the argument t, and
// returns the number of damaged rows in the result d.
func (e *expected) damaged(served time.Duration, counts map[string]int64, rows map[int64]user, t tally) (d damage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twice(counts, t)
	due := e.due(served)
	for article, want := range due.counts {
		if e.counts[article] == want { // the article has no views since the snapshot
			t[article] = damage{lost: max(0, want-counts[article]), twice: t[article].twice}
		}
	}
	asked := map[int64]bool{}
	if e.asked != nil {
		for _, c := range e.asked.changes {
			asked[c.id] = true
		}
	}
	for id := range rows {
		if _, written := e.users[id]; !written && !asked[id] {
			d.twice++
		}
	}
	for id, old := range due.users {
		row, there := rows[id]
		switch {
		case there && row.version < old.version:
			d.lost++ // stale, or not deleted
		case !there && !old.deleted && e.users[id].version == old.version && !asked[id]:
			d.lost++
		}
	}
	return d
}

// damagedNaive does the same as [expected.damaged] for the naive program. Each count of the naive program is in Redis or in the table. For
// a moment it is in both, because the program deletes the count in Redis only after it has written the count to the table. The three
// arguments written, waiting and counts were read in this order.
func (e *expected) damagedNaive(written, waiting, counts map[string]int64, t tally) {
	for article, n := range written {
		t.see(article, damage{lost: n - waiting[article] - counts[article]})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twice(counts, t)
}

// twice finds increments in the tables that the generator has not written. It leaves out the increments of an unacknowledged batch, because
// Redis may have executed that batch.
func (e *expected) twice(counts map[string]int64, t tally) {
	asked := map[string]int64{}
	if e.asked != nil {
		for _, article := range e.asked.counts {
			asked[article]++
		}
	}
	for article, got := range counts {
		t.see(article, damage{twice: got - e.counts[article] - asked[article]})
	}
}

// counted returns a copy of the counters as the generator has written them.
func (e *expected) counted() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.counts)
}

// tally maps each counter to the greatest damage that was seen, because later increments may hide the damage again.
type tally map[string]damage

// see records the damage of an article's counter, so that later increments cannot hide this damage.
func (t tally) see(article string, d damage) {
	t[article] = damage{lost: max(t[article].lost, d.lost), twice: max(t[article].twice, d.twice)}
}

func (t tally) sum() (d damage) {
	for _, one := range t {
		d.lost += one.lost
		d.twice += one.twice
	}
	return d
}

// due returns the content that the tables must have by now. The argument served is how long the nodes have been able to flush.
func (e *expected) due(served time.Duration) snapshot {
	if len(e.settled) == 0 || e.settled[0].served > served-settleAfter {
		return snapshot{}
	}
	return e.settled[0]
}
