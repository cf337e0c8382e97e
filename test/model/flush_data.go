package model

import "math/bits"

// verdict is Redis' answer to a request, or the database's answer to the ledger or position of a page.
type verdict uint8

const (
	done    verdict = iota
	nothing         // the page is in the database already
	stale           // the stage has another id or no id; or the position is another one
	more            // the staged index still has ids
)

// These are the requests to Redis that write.
const (
	toStage uint8 = iota + 1
	toGather
	toSeal
	toRemove
	toDiscard
	toTrim
)

// execute lets Redis execute a script.
func (p FlushProtocol) execute(s *Flush, m message) verdict {
	r := &s.redis
	switch m.kind {
	case toStage:
		p.stage(s, m)
		return done
	case toGather:
		return p.gatherScript(s, m)
	case toSeal:
		return p.seal(s, m)
	case toRemove:
		return p.removeScript(r, m)
	case toTrim:
		p.trim(s, m)
		return done
	}
	return p.discard(r, m)
}

// stage is stage.lua and counters_stage.lua: it makes a stage, or finds the stage of an earlier run.
func (p FlushProtocol) stage(s *Flush, m message) {
	r := &s.redis
	found := r.id != 0
	switch p.Source {
	case Counters:
		if !found && r.live != 0 {
			r.id, r.stage, r.live, r.sealed = m.fresh, r.live, 0, true
			r.parts = s.cut(r.stage)
			s.staged |= r.stage
		}
	case PlainCounters:
		if !found && r.waits == 0 { // a staged index without an id is staged again
			r.waits, r.index = r.index, 0
		}
		if !found && r.waits != 0 {
			r.id = m.fresh
		}
	case Hashes:
		switch {
		case found && r.waits != 0:
		case r.index == 0:
			r.id = 0
		default:
			r.id, r.waits, r.index = m.fresh, r.index, 0
		}
	}
	if found && p.off(KeptID) {
		r.id = m.fresh
	}
}

// cut returns the number of parts of a stage. A part is one key, or two keys after the configuration has changed.
func (s *Flush) cut(stage changes) uint8 {
	n := uint8(bits.OnesCount8(uint8(s.keysOf(stage))))
	if s.large {
		n = (n + 1) / 2
	}
	return n
}

// content returns the increments of one part of a stage, which is cut by the order of its keys.
func (s *Flush) content(part, parts uint8) changes {
	if parts <= 1 {
		return s.redis.stage
	}
	for k := range uint8(maxKeys) {
		if of := s.of(k) & s.redis.stage; of != 0 {
			if part == 0 {
				return of
			}
			part--
		}
	}
	return 0
}

// gather lets a leader move the counts of the staged ids into the stage, one id at a time, and then seal the stage.
func (c *flushSteps) gather(i int) {
	n, r := c.from.node[i], c.from.redis
	for k := range uint8(maxKeys) {
		if r.waits.has(k) {
			c.ask(i, message{kind: toGather, id: n.id, key: k}, func(_ *Flush, n *writer, v verdict) {
				if v == stale {
					n.fail()
				}
			})
		}
	}
	if r.waits == 0 || c.p.off(SealAll) {
		m := message{kind: toSeal, id: n.id}
		if !c.p.off(SealGivesID) {
			m.fresh = c.fresh(i)
		}
		c.ask(i, m, func(to *Flush, n *writer, v verdict) {
			if n.fail(); v == done && to.redis.id != 0 {
				n.task, n.id, n.parts = reading, to.redis.id, to.redis.parts
			}
		})
	}
	if to := c.from; c.p.off(SealedOnly) && r.id == n.id && r.stage != 0 {
		to.node[i].task, to.node[i].parts = reading, to.cut(r.stage)
		c.add(readsEarly, i, 0, to)
	}
}

// gatherScript is counters_gather.lua.
func (p FlushProtocol) gatherScript(s *Flush, m message) verdict {
	r := &s.redis
	if r.id != m.id && !p.off(GatherOwn) {
		return stale
	}
	if r.waits.has(m.key) || p.off(GatherIndexed) {
		counts := s.of(m.key) & r.live
		r.stage |= counts
		r.live &^= counts
		r.waits &^= 1 << m.key
	}
	return done
}

// seal is counters_seal.lua.
func (p FlushProtocol) seal(s *Flush, m message) verdict {
	r := &s.redis
	switch {
	case r.id != m.id:
		return stale
	case r.sealed:
		return done
	case r.waits != 0 && !p.off(SealAll):
		return more
	case r.stage == 0:
		r.id = 0
		return done
	}
	if m.fresh != 0 {
		r.id = m.fresh
	}
	r.sealed, r.parts = true, s.cut(r.stage)
	s.staged |= r.stage
	return done
}

// discard is stage_discard.lua.
func (p FlushProtocol) discard(r *keyspace, m message) verdict {
	if r.id != m.id && !p.off(DiscardOwn) {
		return stale
	}
	if p.Source == Hashes && uint8(bits.OnesCount8(uint8(r.waits))) > m.left && !p.off(KeepUnflushed) {
		return done // the stage is kept
	}
	r.id, r.stage, r.sealed, r.parts = 0, 0, false, 0
	if p.Source == Hashes {
		r.waits = 0
	}
	return done
}

// read lets a leader read the next page, or discard the stage.
func (c *flushSteps) read(i int) {
	to := c.from
	n := &to.node[i]
	switch c.p.Source {
	case Hashes:
		c.readHash(i)
		return
	case Stream:
		c.readStream(i)
		return
	case Totals:
		for k := range uint8(maxKeys) {
			if to = c.from; n.part < maxPages {
				n.task, n.page = marking, transaction{state: isRead, key: k, value: to.redis.value[k]}
				c.add(readsPage, i, k, to)
			}
		}
		return
	}
	all := n.part >= n.parts
	if !all && to.redis.id == n.id {
		n.page = transaction{state: isRead, id: n.id, part: n.part, has: to.content(n.part, n.parts)}
		if n.task = writing; n.page.has == 0 {
			c.p.applied(n) // an empty part is left out
		}
		c.add(readsPage, i, 0, to)
	}
	if all || c.p.off(DiscardLast) {
		c.ask(i, message{kind: toDiscard, id: n.id}, func(_ *Flush, n *writer, _ verdict) {
			n.repeats = 0
			n.fail()
		})
	}
}

// maxPages limits the pages of totals that one run writes.
const maxPages = 3

// marks lets a leader read the mark of a total, behind a lock of the fence, and compute the growth since that mark.
func (c *flushSteps) marks(i int) {
	to := c.from
	n := &to.node[i]
	switch {
	case c.fenceLocked() && !c.p.off(BehindFence):
		return
	case to.tables.fence != n.epoch:
		*n = writer{}
		c.add(stepsDown, i, 0, to)
		return
	}
	c.p.grow(n, &n.page, to.tables.mark[n.page.key])
	if n.task = writing; n.page.state == 0 {
		n.task = reading
	}
	c.add(readsMark, i, 0, to)
}

// grow computes the growth of a total. If there is none, or if the total has decreased, there is no page.
func (p FlushProtocol) grow(n *writer, page *transaction, known uint8) {
	switch v := page.value; {
	case v > known:
		page.grown = v - known
	case v < known && p.off(DecreaseStops):
		page.grown = v
	default:
		*page = transaction{}
		return
	}
	page.id, page.part = n.id, n.part
	n.part++
}

// readAhead lets a leader read the total of the page that it is writing once more, because a scan may return a key twice.
func (c *flushSteps) readAhead(i int) {
	to := c.from
	n := &to.node[i]
	if c.p.Source != Totals || n.ahead.state != 0 || n.part >= maxPages {
		return
	}
	known := n.page.value
	if c.p.off(UnderWay) {
		known = to.tables.mark[n.page.key]
	}
	n.ahead = transaction{state: isRead, key: n.page.key, value: to.redis.value[n.page.key]}
	if c.p.grow(n, &n.ahead, known); n.ahead.state != 0 {
		c.add(readsAhead, i, 0, to)
	}
}

// opened begins the transaction of a page with the ledger or the position. It returns nothing if the page is in the database already.
func (p FlushProtocol) opened(s *Flush, t transaction) verdict {
	switch p.Source {
	case Counters, PlainCounters, Totals:
		if s.tables.ledger[t.id]>>t.part&1 == 1 && !p.off(InLedger) {
			return nothing
		}
	case Stream:
		switch at := s.tables.at[t.job]; {
		case at == t.from || p.off(MoveCompares):
		case at == t.to:
			return nothing
		default:
			return stale
		}
	}
	return done
}

// commit commits a transaction. It returns the promise that this breaks.
func (p FlushProtocol) commit(s *Flush, t transaction) (broken string) {
	b := &s.tables
	switch p.Source {
	case Counters, PlainCounters, Stream:
		if b.rows[t.job]&t.has&^s.again != 0 {
			broken = p.broken(ChangeTwice)
		}
		b.rows[t.job] |= t.has
	case Hashes:
		b.row[t.key] = t.value
	case Totals:
		b.row[t.key] += t.grown
	}
	if p.inside() {
		p.note(b, t)
	}
	if t.epoch < b.fence && broken == "" {
		broken = p.broken(NoneCommits)
	}
	return broken
}

// inside reports whether the ledger, the position and the mark are written in the transaction of the rows.
func (p FlushProtocol) inside() bool {
	return !p.off(LedgerInside) && !p.off(MoveInside) && !p.off(MarkInside)
}

// note writes the ledger, the position or the mark of a transaction.
func (p FlushProtocol) note(b *tables, t transaction) {
	switch p.Source {
	case Counters, PlainCounters, Totals:
		b.ledger[t.id] |= 1 << t.part
		b.newest = t.id
		if p.Source == Totals {
			b.mark[t.key] = t.value
		}
	case Stream:
		b.at[t.job] = t.to
	}
}

// applied ends the work on a page that is in the database.
func (p FlushProtocol) applied(n *writer) {
	page := n.page
	n.task, n.page, n.ahead = reading, n.ahead, transaction{}
	switch p.Source {
	case Counters, PlainCounters:
		n.part++
	case Hashes:
		n.task, n.page = removing, transaction{key: page.key}
	case Stream:
		n.at, n.from, n.anchor = page.to, page.to, true
	case Totals:
		if n.page.state != 0 {
			n.task = writing
		}
	}
}
