package model

// flushSteps collects the steps from one state.
type flushSteps struct {
	p    FlushProtocol
	from Flush
	all  []Step[Flush]
}

func (c *flushSteps) add(act uint8, node int, detail uint8, to Flush) {
	c.all = append(c.all, Step[Flush]{To: to, Act: act, Node: int8(node), Detail: detail})
}

// Steps implements Protocol.
func (p FlushProtocol) Steps(s Flush, into []Step[Flush]) []Step[Flush] {
	c := flushSteps{p, s, into}
	if !p.Calm {
		c.faults()
	}
	c.application()
	for i := range p.Nodes {
		if s.node[i].epoch == 0 {
			c.elect(i)
		} else {
			c.lead(i)
		}
	}
	c.ownerless()
	return c.all
}

// application lets the application write a change.
func (c *flushSteps) application() {
	if to := c.from; to.half != 0 { // hashes: the second half of a change
		k := to.half - 1
		to.half = 0
		if c.p.off(MarkLast) {
			to.setValue(k)
		} else {
			to.redis.index |= 1 << k
		}
		c.add(completes, -1, k, to)
		return
	}
	if c.from.written == c.p.Bounds.Changes || c.p.Calm {
		return
	}
	for k := range uint8(maxKeys) {
		if c.p.Source != Stream {
			c.change(k)
		}
	}
	for id := c.from.redis.last + 1; c.p.Source == Stream && id <= maxChanges+1; id++ {
		if to := c.from; !to.gave(id) {
			to.id[to.written] = id
			to.redis.live |= 1 << to.written
			to.redis.last, to.redis.added = id, to.redis.added+1
			to.written++
			c.add(changesKey, -1, id, to)
		}
	}
}

// change writes a change of one key.
func (c *flushSteps) change(k uint8) {
	to := c.from
	switch c.p.Source {
	case PlainCounters:
		to.redis.index |= 1 << k
		fallthrough
	case Counters:
		to.key[to.written] = k
		to.redis.live |= 1 << to.written
		to.written++
	case Hashes:
		if !c.p.off(MarkLast) {
			to.setValue(k)
		}
		if c.p.Atomic || c.p.off(MarkLast) {
			to.redis.index |= 1 << k
		}
		if !c.p.Atomic {
			to.half = k + 1
		}
	case Totals:
		to.redis.value[k]++
		to.given[k]++
		to.written++
	}
	c.add(changesKey, -1, k, to)
}

// elect lets a node win an election. The leader before it may still believe that it leads.
func (c *flushSteps) elect(i int) {
	to := c.from
	if to.spent.Terms == c.p.Bounds.Terms && (!c.p.Calm || to.node[0].epoch != 0) {
		return
	}
	to.spent.Terms++
	to.node[i] = writer{epoch: to.spent.Terms}
	c.add(elects, i, 0, to)
}

// fail ends a run. The next run begins at the top.
func (n *writer) fail() { *n = writer{epoch: n.epoch, task: resting, repeats: n.repeats} }

// lead lets a leader do its next step, or end its run or its term at any point.
func (c *flushSteps) lead(i int) {
	to := c.from
	n := &to.node[i]
	if !c.p.Calm {
		*n = writer{}
		c.add(crashes, i, 0, to)
	}
	if to = c.from; n.task > resting {
		n.fail()
		c.add(failsRun, i, 0, to)
	}
	to = c.from
	switch n.task {
	case claiming:
		c.claim(i)
	case resting:
		c.begin(i)
	case looking:
		c.look(i)
	case gathering:
		c.gather(i)
	case reading:
		c.read(i)
	case marking:
		c.marks(i)
	case writing:
		c.write(i)
	case noting:
		c.p.note(&to.tables, n.page)
		c.p.applied(n)
		c.add(notes, i, 0, to)
	case removing:
		c.remove(i)
	}
}

// fenceLocked reports whether another transaction has locked the fence until its end.
func (c *flushSteps) fenceLocked() bool {
	for i := range c.from.node {
		if c.from.node[i].page.state == isChecked {
			return true
		}
	}
	return c.from.orphan.state == isChecked
}

// claim lets a leader take the fence. It waits for the transactions that have locked the fence.
func (c *flushSteps) claim(i int) {
	to := c.from
	n := &to.node[i]
	if c.fenceLocked() && !c.p.off(FenceLocked) {
		return
	}
	if to.tables.fence > n.epoch {
		*n = writer{}
		c.add(stepsDown, i, 0, to)
		return
	}
	to.tables.fence, n.task = n.epoch, resting
	c.add(claims, i, 0, to)
}

// begin begins a run.
func (c *flushSteps) begin(i int) {
	to := c.from
	n := &to.node[i]
	switch c.p.Source {
	case Stream:
		for job := range c.p.Jobs {
			c.position(i, job)
		}
	case Totals:
		n.task, n.id = reading, to.freshID()
		c.add(begins, i, 0, to)
	default:
		if c.p.off(StageFirst) && n.early == [maxKeys]uint8{} && to.redis.value != n.early {
			n.early = to.redis.value
			c.add(peeks, i, 0, to)
			return
		}
		m := message{kind: toStage, fresh: c.fresh(i)}
		if c.p.Source == PlainCounters {
			m.fresh = c.from.freshID() // the seal proposes the id for the ledger
		}
		c.ask(i, m, func(to *Flush, n *writer, _ verdict) {
			if to.redis.id == 0 {
				return // nothing is pending
			}
			early := n.early
			n.fail()
			n.id, n.parts, n.early, n.resumed = to.redis.id, to.redis.parts, early, to.redis.id != m.fresh
			if n.task = reading; c.p.Source == PlainCounters && !to.redis.sealed {
				n.task = gathering
			}
			if c.p.off(PartsOnce) {
				n.parts = to.cut(to.redis.stage)
			}
		})
	}
}

// fresh returns the id that a node proposes for a stage.
func (c *flushSteps) fresh(i int) uint8 {
	if id := c.from.node[i].repeats; id != 0 {
		return id
	}
	return c.from.freshID()
}

// ask lets a node send a request to Redis. The node reads the answer, or the answer is lost, or Redis executes the request later. Without
// an answer the run fails. A request that is lost is a run that fails before the request.
func (c *flushSteps) ask(i int, m message, answered func(*Flush, *writer, verdict)) {
	to := c.from
	if c.p.off(FreshID) && m.fresh != 0 && (m.kind == toSeal) == (c.p.Source == PlainCounters) {
		to.node[i].repeats = m.fresh
	}
	late := to
	v := c.p.execute(&to, m)
	silent := to
	if answered(&to, &to.node[i], v); to != c.from {
		c.add(sends0+m.kind, i, m.key, to)
	}
	if c.p.Calm {
		return
	}
	if silent.redis != c.from.redis {
		silent.node[i].fail()
		c.add(unanswered0+m.kind, i, m.key, silent)
	}
	late.node[i].fail()
	if late.send(c.p, m) {
		c.add(delayed0+m.kind, i, m.key, late)
	}
}

// send puts a request on its way. It returns false if the bounds do not allow another late request.
func (s *Flush) send(p FlushProtocol, m message) bool {
	for i := range min(p.Bounds.Late, maxMessages) {
		if s.net[i].kind == 0 {
			s.net[i] = m
			return true
		}
	}
	return false
}

// write lets a leader write its page: ledger or position, rows, last the check of the fence, and COMMIT.
func (c *flushSteps) write(i int) {
	to := c.from
	n := &to.node[i]
	switch n.page.state {
	case isRead:
		n.page.epoch = n.epoch
		if c.waits(i, n.page) {
			break
		}
		switch c.p.opened(&to, n.page) {
		case done:
			n.page.state = isOpen
			c.add(opens, i, 0, to)
		case nothing:
			c.p.applied(n)
			c.add(skips, i, 0, to)
		default:
			n.fail()
			c.add(failsRun, i, 0, to)
		}
		if to = c.from; c.p.off(RemoveAfter) && c.p.Source == Hashes {
			c.remove(i)
		}
	case isOpen:
		if to.tables.fence != n.epoch && !c.p.off(OwnEpoch) {
			*n = writer{}
			c.add(stepsDown, i, 0, to)
			break
		}
		n.page.state = isChecked
		c.add(checks, i, 0, to)
	case isChecked:
		c.commit(i)
	}
	c.readAhead(i)
}

// commit lets a leader send COMMIT. It has the answer, or the answer is lost, or COMMIT is still on its way while the client is gone. The
// leader then applies the same page again.
func (c *flushSteps) commit(i int) {
	to := c.from
	n := &to.node[i]
	page := n.page
	broken := c.p.commit(&to, page)
	unanswered := to
	if n.task = noting; c.p.inside() {
		c.p.applied(n)
	}
	c.add(commitsPage, i, 0, to)
	c.all[len(c.all)-1].Broken = broken
	if c.p.Calm {
		return
	}
	unanswered.node[i].page.state = isRead
	c.add(commitsUnheard, i, 0, unanswered)
	c.all[len(c.all)-1].Broken = broken
	to = c.from
	n.page.state = isRead
	c.add(rollsBack, i, 0, to)
	if to.orphan.state == 0 {
		to.orphan = page
		c.add(commitsLate, i, 0, to)
	}
}

// waits reports whether a transaction waits for a lock of another one.
func (c *flushSteps) waits(i int, t transaction) bool {
	if c.p.off(LedgerWaits) {
		return false
	}
	for j := range c.from.node {
		if o := c.from.node[j].page; j != i && o.state >= isOpen && c.p.conflict(t, o) {
			return true
		}
	}
	return c.from.orphan.state != 0 && c.p.conflict(t, c.from.orphan)
}

// conflict reports whether two transactions write the same row.
func (p FlushProtocol) conflict(a, b transaction) bool {
	switch p.Source {
	case Hashes:
		return a.key == b.key
	case Stream:
		return a.job == b.job
	case Totals:
		return a.key == b.key || a.id == b.id && a.part == b.part
	}
	return a.id == b.id && a.part == b.part
}
