package model

import "math/bits"

// setValue writes a hash.
func (s *Flush) setValue(k uint8) {
	s.written++
	s.redis.value[k] = s.written
	s.ahead &^= 1 << k
}

// readHash lets a leader read the hash of an id in the stage. When it has flushed all ids, it discards the stage.
func (c *flushSteps) readHash(i int) {
	left := c.from.redis.waits &^ c.from.node[i].seen
	for k := range uint8(maxKeys) {
		to := c.from
		n := &to.node[i]
		if left.has(k) {
			n.task, n.page = writing, transaction{state: isRead, key: k, value: to.redis.value[k]}
			if c.p.off(StageFirst) {
				n.page.value = n.early[k]
			}
			c.add(readsPage, i, k, to)
		}
	}
	if n := c.from.node[i]; left == 0 || c.p.off(KeepUnflushed) {
		m := message{kind: toDiscard, id: n.id, left: uint8(bits.OnesCount8(uint8(n.passed)))}
		c.ask(i, m, func(_ *Flush, n *writer, _ verdict) { n.fail() })
	}
}

// remove lets a leader remove a flushed id from the stage, or leave the id there until it discards the stage.
func (c *flushSteps) remove(i int) {
	n := c.from.node[i]
	k := n.page.key
	c.ask(i, message{kind: toRemove, id: n.id, key: k}, func(_ *Flush, n *writer, v verdict) {
		if v == stale {
			n.fail()
		} else if n.task == removing {
			n.task, n.page = reading, transaction{}
			n.seen |= 1 << k
		}
	})
	if to := c.from; !n.resumed && n.task == removing {
		n.task, n.page = reading, transaction{}
		n.seen |= 1 << k
		n.passed |= 1 << k
		to.node[i] = n
		c.add(leavesThere, i, k, to)
	}
}

// removeScript is stage_remove.lua.
func (p FlushProtocol) removeScript(r *keyspace, m message) verdict {
	if r.id != m.id && !p.off(RemoveOwn) {
		return stale
	}
	r.waits &^= 1 << m.key
	return done
}

// gave reports whether a stream has given an id. The model assumes that no id is given twice, although Redis may forget it.
func (s *Flush) gave(id uint8) bool {
	for c := range s.written {
		if s.id[c] == id {
			return true
		}
	}
	return false
}

// after returns the entries with an id after the given one.
func (s *Flush) after(entries changes, id uint8) (later changes) {
	for c := range s.written {
		if entries>>c&1 == 1 && s.id[c] > id {
			later |= 1 << c
		}
	}
	return later
}

// first returns the entry with the lowest id, as a set. It is empty if there is none.
func (s *Flush) first(entries changes) (first changes) {
	low := uint8(0)
	for c := range s.written {
		if entries>>c&1 == 1 && (low == 0 || s.id[c] < low) {
			low, first = s.id[c], 1<<c
		}
	}
	return first
}

// idOf returns the id of the entry in a set. It returns 0 for the empty set.
func (s *Flush) idOf(entry changes) uint8 {
	if entry == 0 {
		return 0
	}
	return s.id[bits.TrailingZeros8(uint8(entry))]
}

// there reports whether the stream has the entry with an id.
func (s *Flush) there(id uint8) bool {
	for c := range s.written {
		if s.redis.live>>c&1 == 1 && s.id[c] == id {
			return true
		}
	}
	return false
}

// gap is place.Look.Gap. It reports whether entries after a position may be missing, in a Redis that counts all entries.
func (p FlushProtocol) gap(s *Flush, at place) bool {
	r := s.redis
	exists := r.added > 0
	switch first := s.idOf(s.first(r.live)); {
	case p.off(AnchorThere), !exists && at.id == 0, exists && s.there(at.id), exists && r.last == at.id:
		return false
	case !exists, r.last < at.id, first != 0 && first < at.id:
		return true
	}
	return r.added-at.ordinal != uint8(bits.OnesCount8(uint8(r.live)))
}

// position lets a leader begin a run of a job, and read the job's position behind a lock of the fence.
func (c *flushSteps) position(i int, job uint8) {
	to := c.from
	n := &to.node[i]
	switch {
	case c.fenceLocked() && !c.p.off(BehindFence):
	case to.tables.fence != n.epoch:
		*n = writer{}
		c.add(stepsDown, i, 0, to)
	default:
		n.task, n.job, n.from = looking, job, to.tables.at[job]
		c.add(readsPosition, i, job, to)
	}
}

// look is Stream.Stage: it finds out whether the job can continue from its position. A run without entries only trims.
func (c *flushSteps) look(i int) {
	to := c.from
	n := &to.node[i]
	if c.p.gap(&to, n.from) {
		n.fail()
		c.add(findsGap, i, 0, to)
		return
	}
	behind := to.after(to.redis.live, n.from.id)
	n.behind, n.anchor = to.idOf(to.first(behind)), to.there(n.from.id)
	if n.behind == 0 {
		c.trimTo(i)
		return
	}
	n.task, n.at, n.from = reading, n.from, c.p.number(&to, n.from)
	n.until = place{to.redis.last, to.redis.added}
	c.add(looks, i, 0, to)
}

// number is place.Look.Number, for a place with entries after it: it sets the ordinal, if the stream shows it.
func (p FlushProtocol) number(s *Flush, at place) place {
	r := s.redis
	switch first := s.idOf(s.first(r.live)); {
	case first > at.id:
		at.ordinal = r.added - uint8(bits.OnesCount8(uint8(r.live)))
	case first == at.id:
		at.ordinal = r.added - uint8(bits.OnesCount8(uint8(r.live))) + 1
	}
	return at
}

// readStream lets a leader read the next entry up to the last one that it has seen, together with the anchor.
func (c *flushSteps) readStream(i int) {
	to := c.from
	n := &to.node[i]
	behind := to.first(to.after(to.redis.live, n.from.id))
	id := to.idOf(behind)
	if n.from.id == n.until.id {
		c.trimTo(i)
		return
	}
	whole := n.anchor && to.there(n.from.id) || !n.anchor && id == n.behind
	if !whole && !c.p.off(AnchorThere) || id == 0 || id > n.until.id {
		n.fail()
		c.add(failsRun, i, 0, to)
		return
	}
	next := place{id: id}
	if n.from.ordinal > 0 || n.from.id == 0 {
		next.ordinal = n.from.ordinal + 1
	}
	if id == n.until.id {
		next = n.until
	}
	n.task = writing
	n.page = transaction{state: isRead, has: behind, job: n.job, from: n.at, to: next}
	c.add(readsPage, i, 0, to)
}

// trimTo lets a leader trim the stream up to its place, and end the run.
func (c *flushSteps) trimTo(i int) {
	n := c.from.node[i]
	m := message{kind: toTrim, job: n.job, at: n.from.id}
	c.ask(i, m, func(_ *Flush, n *writer, _ verdict) { n.fail() })
}

// trim is stream_trim.lua. It trims the entries before the positions of all jobs, and records the position of the job. If the entry at the
// position is missing, a failover may have lost it: then entries before the position may be new, and are not read.
func (p FlushProtocol) trim(s *Flush, m message) {
	r := &s.redis
	before := r.live &^ s.after(r.live, m.at-1)
	if m.at == 0 {
		before = 0
	}
	sound := m.at == 0 || s.there(m.at) || before == 0 && (r.last >= m.at || p.off(LastNoted))
	if sound || p.off(TrimToAnchor) {
		upto := m.at
		for job, at := range r.noted {
			if job != int(m.job) && job < int(p.Jobs) && !p.off(TrimForAll) {
				upto = min(upto, at)
			}
		}
		if p.off(TrimKeeps) {
			upto++
		}
		if upto > 0 {
			r.live = s.after(r.live, upto-1)
		}
	}
	if sound || p.off(NoteAnchor) {
		r.noted[m.job] = m.at
	}
}
