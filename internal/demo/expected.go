package demo

import (
	"maps"
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

// damage is the harm in a table.
type damage struct {
	lost  int64 // increments that are missing, and rows that are missing or stale
	twice int64 // increments too many, and rows that were not written
}

// expected is the content that the tables must have when everything is flushed. It changes only by writes that Redis has acknowledged.
type expected struct {
	mu      sync.Mutex
	counts  map[string]int64
	users   map[int64]user
	written amount
	asked   *batch // Redis may have it already, and has not acknowledged it
	history []mark
	settled []snapshot // the oldest first
}

// mark is how many increments had been written at a moment.
type mark struct {
	at       time.Time
	counters int64
}

// snapshot is the expected content at a moment.
type snapshot struct {
	served time.Duration // how long the nodes had been flushing by then
	counts map[string]int64
	users  map[int64]user
}

func newExpected() *expected {
	return &expected{counts: map[string]int64{}, users: map[int64]user{}}
}

// ask notes a batch before Redis gets it.
func (e *expected) ask(b batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = &b
}

// add notes a batch that Redis has acknowledged.
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

// total is the amount of acknowledged writes.
func (e *expected) total() amount {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// lag is about the age of the oldest increment that is not flushed, if increments are flushed in the order of writing.
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

// waiting counts the missing increments, and the users' rows that are not as last written.
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

// remember keeps the present content, so that it must be in the tables once the nodes have been able to flush for settleAfter longer.
func (e *expected) remember(served time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled = append(e.settled, snapshot{served, maps.Clone(e.counts), maps.Clone(e.users)})
	for len(e.settled) > 1 && e.settled[1].served <= served-settleAfter {
		e.settled = e.settled[1:]
	}
}

// damaged compares tables, which were read a moment ago, with the content that they may and must have. Counters go into t, rows into d.
func (e *expected) damaged(served time.Duration, counts map[string]int64, rows map[int64]user, t tally) (d damage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twice(counts, t)
	due := e.due(served)
	for article, want := range due.counts {
		if e.counts[article] == want { // the article has rested since
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

// damagedNaive is [expected.damaged] for the naive program, whose counts are in known places: in Redis or, from before they are deleted
// there, in the table. written, waiting and counts were read in this order.
func (e *expected) damagedNaive(written, waiting, counts map[string]int64, t tally) {
	for article, n := range written {
		t.see(article, damage{lost: n - waiting[article] - counts[article]})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twice(counts, t)
}

// twice finds increments beyond the written ones; a batch without acknowledgement may count.
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

// counted is a copy of the written counters.
func (e *expected) counted() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.counts)
}

// tally is the damage seen of each counter: later increments may hide it again.
type tally map[string]damage

// see notes damage that nothing undoes.
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

// due is the content that must be in the tables by now.
func (e *expected) due(served time.Duration) snapshot {
	if len(e.settled) == 0 || e.settled[0].served > served-settleAfter {
		return snapshot{}
	}
	return e.settled[0]
}
