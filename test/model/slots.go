package model

import "slices"

// slotSteps collects the steps from one state.
type slotSteps struct {
	p    SlotsProtocol
	from Slots
	all  []Step[Slots]
}

func (c *slotSteps) add(act uint8, node int, detail uint8, to Slots) {
	c.all = append(c.all, Step[Slots]{To: to, Act: act, Node: int8(node), Detail: detail})
}

// Steps implements Protocol.
func (p SlotsProtocol) Steps(s Slots, into []Step[Slots]) []Step[Slots] {
	c := slotSteps{p, s, into}
	if to := s; s.due < p.Slots {
		to.due++
		c.add(falls, -1, 0, to)
	}
	c.lockMoves()
	for i := range p.Nodes {
		if s.node[i].term != 0 {
			c.work(i)
		}
	}
	c.redis()
	return c.all
}

// lockMoves lets a term end, and another node take over. At the end of the term its runs are killed; its requests are late.
func (c *slotSteps) lockMoves() {
	to := c.from
	if to.lock != 0 && (!c.p.Calm || to.terms == 0) {
		for i := range to.node {
			if n := &to.node[i]; n.term == to.lock && !(c.p.off(StartsInTerm) && n.phase == granted) {
				*n = runner{}
			}
		}
		for i := range to.net {
			if to.net[i].phase != idle {
				to.net[i].late = true
			}
		}
		if to.lock = 0; to.lateCalls() <= c.p.Late {
			c.add(loses, -1, 0, to)
		}
	}
	if c.from.lock != 0 || c.from.terms == c.p.Terms && !c.p.Calm {
		return
	}
	for i := range c.p.Nodes {
		if to = c.from; to.node[i].term != 0 {
			continue
		}
		to.terms++
		to.lock = to.terms
		l := to.ledger
		n := runner{term: to.terms, after: max(l.last, l.missed), retry: l.retry}
		if l.open != (run{}) {
			n.phase, n.run = losing, l.open
		}
		to.node[i] = n
		c.add(takes, i, 0, to)
	}
}

func (s *Slots) lateCalls() uint8 {
	n := uint8(0)
	for _, q := range s.net {
		if q.late {
			n++
		}
	}
	return n
}

func (s *Slots) send(q call) bool {
	for i := range s.net {
		if s.net[i].phase == idle {
			s.net[i] = q
			return true
		}
	}
	return false
}

// work lets a node do its next step: begin with a slot, ask, ask again, start the run, end the run.
func (c *slotSteps) work(i int) {
	to := c.from
	n := &to.node[i]
	next := func(p phase, r run) {
		to = c.from
		n.phase, n.run = p, r
		n.retry = c.from.node[i].retry
		if q := (call{phase: p, run: r, first: r.attempt == 1}); to.send(q) {
			c.add(sends, i, uint8(p), to)
		}
	}
	switch n.phase {
	case idle:
		// A retrial is given up when a later slot is due.
		if r := n.retry; r != (run{}) && r.slot >= to.due {
			r.term = n.term
			next(asking, r)
		}
		for slot := n.after + 1; slot <= to.due; slot++ {
			next(asking, run{n.term, slot, 1})
			if slot < to.due {
				next(missing, run{n.term, slot, 0})
			}
			if !c.p.off(MissesFirst) {
				break
			}
		}
	case granted:
		n.phase = running
		to.starts[n.run.slot][n.run.attempt]++
		c.add(starts, i, 0, to)
	case running:
		n.phase = ended
		c.add(succeeds, i, 0, to)
		if n.run.attempt < maxAttempts {
			n.phase = failed
			c.add(fails, i, 0, to)
		}
	default:
		q := call{phase: n.phase, run: n.run, first: n.run.attempt == 1}
		if to = c.markLate(q); to.lateCalls() > c.p.Late || c.p.Calm && to != c.from {
			return
		}
		if to.send(q) {
			c.add(asksAgain, i, uint8(n.phase), to)
		}
		if n.phase == asking && n.run.attempt == 1 && n.run.slot < to.due {
			to = c.markLate(q)
			n.phase, q.phase = missing, missing
			if to.send(q) {
				c.add(givesUp, i, 0, to)
			}
		}
	}
}

// markLate returns the state in which no node waits for the answer to the request any more.
func (c *slotSteps) markLate(q call) Slots {
	to := c.from
	for k := range to.net {
		if to.net[k] == q {
			to.net[k].late = true
		}
	}
	return to
}

// redis lets Redis execute any of the requests. The node reads the answer at once, or never, and asks again.
func (c *slotSteps) redis() {
	for k, q := range c.from.net {
		if q.phase == idle {
			continue
		}
		to := c.from
		to.net[k] = call{}
		ok := c.p.execute(&to, q)
		i := c.sender(q)
		if i < 0 || !c.p.Calm {
			c.add(executes, i, uint8(k)+1, to)
		}
		if read := to; i >= 0 {
			read.node[i].answered(ok)
			c.add(executes, i, uint8(k)+1, read)
		}
		if to.twice < c.p.Twice && !c.p.Calm {
			to.twice++
			q.late = true
			if to.send(q); to.lateCalls() <= c.p.Late {
				c.add(executesTwice, i, uint8(k)+1, to)
			}
		}
	}
}

// sender returns the node that waits for the answer to a request, or -1.
func (c *slotSteps) sender(q call) int {
	if q.late {
		return -1
	}
	return slices.IndexFunc(c.from.node[:], func(n runner) bool { return n.term != 0 && n.phase == q.phase && n.run == q.run })
}

// answered lets a node react to the answer to its request.
func (n *runner) answered(ok bool) {
	if n.run.slot > n.after {
		n.after = n.run.slot
	}
	done := n.phase
	n.retry = run{}
	switch {
	case done == asking && ok:
		n.phase = granted
		return
	case done == missing && !ok && n.run.attempt != 0:
		n.phase = losing // its claim was granted, but the answer was lost
		return
	case done == failed && ok, done == losing && ok && n.run.attempt < maxAttempts:
		n.retry = run{0, n.run.slot, n.run.attempt + 1}
	}
	n.phase, n.run = idle, run{}
}

// execute lets Redis execute job_claim.lua, job_miss.lua or job_finish.lua.
func (p SlotsProtocol) execute(s *Slots, q call) bool {
	l := &s.ledger
	mine := s.lock != 0 && s.lock == q.run.term
	switch q.phase {
	case asking:
		if !mine && !p.off(OwnerClaims) {
			return false
		}
		return p.claim(l, q)
	case missing:
		if !mine && !p.off(OwnerMisses) {
			return false
		}
		claimed := l.last == q.run.slot || l.result[q.run.slot][1] != unrecorded
		if q.run.attempt != 0 && claimed && !p.off(ClaimedIsNotMissed) {
			return false // it was claimed after all
		}
		s.misses[q.run.slot] = 1
		l.missed = max(l.missed, q.run.slot)
		return true
	}
	return p.finish(l, q)
}

// claim is job_claim.lua.
func (p SlotsProtocol) claim(l *ledger, q call) bool {
	r := q.run
	if l.open == r && !p.off(SameRun) {
		return true
	}
	if q.first {
		last := l.last
		if !p.off(MissedBars) {
			last = max(last, l.missed)
		}
		if r.slot <= last && !p.off(LaterSlot) {
			return false
		}
		l.last, l.retry = max(l.last, r.slot), run{}
	} else {
		if l.retry != (run{0, r.slot, r.attempt}) && !p.off(RetrialPending) {
			return false
		}
		if !p.off(RetrialOnce) {
			l.retry = run{}
		}
	}
	l.open = r
	return true
}

// finish is job_finish.lua. It records the result of a run, or that the run is lost. It does not check the owner of the lock.
func (p SlotsProtocol) finish(l *ledger, q call) bool {
	r := q.run
	result := &l.result[r.slot][r.attempt]
	again := r.attempt < maxAttempts && q.phase != ended
	switch {
	case l.open != r && q.phase == losing, l.open != r && *result == recorded && !p.off(RecordedOnce):
		return false
	case *result == recordedLost && !p.off(LostKeepsRetrial):
		again = false
	}
	if l.open == r {
		l.open = run{}
	}
	if *result = recorded; q.phase == losing {
		*result = recordedLost
	}
	if again && l.last <= r.slot {
		l.retry = run{0, r.slot, r.attempt + 1}
	}
	return true
}
