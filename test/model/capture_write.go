package model

import "slices"

// read lets a leader read the next key of its batch. In a pass a key that is not there gives no page.
func (c *captureSteps) read(i int) {
	to := c.from
	n := &to.node[i]
	b := &n.batch
	for !b.pass && n.next < maxKeys && !b.keys.has(n.next) {
		n.next++
	}
	if n.next == maxKeys {
		c.readAll(i, to)
		return
	}
	k := n.next
	n.next++
	if b.pass && to.redis.value[k] == 0 {
		c.add(findsNoKey, i, k, to)
		return
	}
	n.page.look(&to.redis, k)
	n.page.final = !b.pass && b.keys>>n.next == 0
	b.found |= 1 << k
	n.task = toAsk
	c.add(readsKey, i, k, to)
}

// readAll ends the reading of a batch. The last page of a pass has no row: it covers the keys that the pass did not find. Then comes the
// sweep. A batch without keys has one page, which moves the place.
func (c *captureSteps) readAll(i int, to Capture) {
	n := &to.node[i]
	switch {
	case !n.batch.pass:
		n.page.final, n.task = true, toWrite
		c.p.move(n)
		c.add(readsNothing, i, 0, to)
	case !n.batch.ended && !c.p.off(PassEnds):
		n.batch.ended, n.task = true, toAsk
		n.batch.missed = n.batch.witness != to.redis.at.id && !c.p.off(PassWitness)
		c.add(readsNothing, i, 0, to)
	default:
		if !n.batch.ended {
			n.batch.missed = n.batch.witness != to.redis.at.id && !c.p.off(PassWitness)
		}
		n.next, n.task = 0, toSearch
		c.add(beginsSweep, i, 0, to)
	}
}

// ask lets a leader ask the master for the end of its history, after a key was read. Then the page is ready. If the key was missing, the
// page waits until the stream was received so far.
func (c *captureSteps) ask(i int) {
	to := c.from
	n, m := &to.node[i], &to.redis
	f, g := &n.feed, &n.page
	if !c.p.noteSeen(m, n) {
		n.fail()
		c.add(failsRun, i, 0, to)
		return
	}
	if g.gone {
		if (!f.joined || f.at != m.at) && !c.p.off(FlushReceived) {
			return
		}
		if (n.batch.broke || f.emptied && c.p.OnFlush != FlushDelete) && !c.p.off(FlushSpares) {
			*g = capturePage{final: g.final}
		}
	}
	n.task = toWrite
	c.p.move(n)
	c.add(asksOffset, i, 0, to)
}

// noteSeen records the end of the history up to which values may have been read. It returns false if the history is not followed.
func (p CaptureProtocol) noteSeen(m *master, n *capturer) bool {
	f := &n.feed
	if f.at.id != m.at.id {
		return p.off(SeenFollowed)
	}
	if n.batch.promoted && !p.off(SeenPromoted) {
		n.owe(true)
	}
	n.batch.promoted = false
	switch {
	case p.off(SeenAfter):
		f.seen = max(f.seen, n.page.early.offset)
	case p.off(SeenOfServer):
		f.seen = max(f.seen, f.at.offset)
	default:
		f.seen = max(f.seen, m.at.offset)
	}
	return true
}

// move sets the place to which the page moves the place in the database.
func (p CaptureProtocol) move(n *capturer) {
	f, b, g := &n.feed, &n.batch, &n.page
	to := capturePlace{at: f.base, seen: f.seen, owed: b.was}
	if b.lost {
		to.at, to.seen = b.base, b.seen
	}
	if b.pass || g.final || p.off(LastMoves) {
		to.at = b.at
	}
	switch {
	case b.pass:
		to.owed = b.owed
	case b.broke && (g.final || !p.off(BreakNoted)):
		to.owed = f.owes()
	case g.final:
		to.owed = b.owed
	}
	if p.off(SeenWritten) {
		to.seen = 0
	}
	g.to, g.epoch = to, n.epoch
}

// write lets a leader commit its page. It has the answer, or the answer is lost, or COMMIT is still on its way while the client is gone.
func (c *captureSteps) write(i int) {
	to := c.from
	n := &to.node[i]
	switch {
	case to.owner != 0:
		return // its transaction has locked the fence and the place
	case to.fence != n.epoch && !c.p.off(OwnEpoch):
		*n = capturer{}
		c.add(stepsDown, i, 0, to)
		return
	case n.page.done:
		c.p.written(n)
		c.add(skips, i, 0, to)
		return
	case !n.page.sweep && n.feed.where == isOther && !c.p.off(PlaceCompares):
		n.fail()
		c.add(failsRun, i, 0, to)
		return
	}
	page := n.page
	broken := c.p.commit(&to, page)
	if !page.sweep {
		if n.feed.where = isPage; page.final {
			n.feed.where = isFinal
		}
	}
	unheard := to
	c.p.written(n)
	c.add(commitsPage, i, 0, to)
	c.all[len(c.all)-1].Broken = broken
	if c.p.Calm || to.spent.Unheard == c.p.Bounds.Unheard {
		return
	}
	unheard.spent.Unheard++
	unheard.node[i].page.done = true
	c.add(commitsUnheard, i, 0, unheard)
	c.all[len(c.all)-1].Broken = broken
	to = c.from
	to.spent.Unheard++
	to.orphan, to.owner = page, n.epoch+1
	c.add(commitsLate, i, 0, to)
}

// commit lets the database execute COMMIT. It returns the promise that this breaks.
func (p CaptureProtocol) commit(to *Capture, page capturePage) string {
	if !page.sweep {
		to.place = page.to
		for i := range to.node {
			if to.node[i].epoch != page.epoch {
				to.node[i].feed.where = isOther
			}
		}
	}
	if page.epoch < to.fence {
		return p.broken(NoneCommits)
	}
	if !page.has {
		return ""
	}
	deleted := to.row[page.key] != 0 && page.value == 0
	to.row[page.key] = page.value
	switch {
	case deleted && !page.gone:
		return p.broken(RowOfKey)
	case deleted && page.wiped && to.redis.wiped.has(page.key) && p.OnFlush == FlushStop && p.flushWaits(to, page.epoch):
		return p.broken(FlushDeletes)
	}
	return ""
}

// flushWaits reports whether a leader has received a FLUSHALL that waits for a decision, or will receive it. It does not learn of a FLUSHALL
// that came before it joined the stream at its end. Then max_pct limits how many rows its pass deletes.
func (p CaptureProtocol) flushWaits(s *Capture, epoch uint8) bool {
	for i := range s.node {
		f := &s.node[i].feed
		if s.node[i].epoch != epoch || p.lacks(&s.redis, f.at) {
			continue
		}
		return f.emptied || slices.Contains(s.redis.log[f.at.offset:s.redis.at.offset], flushAll)
	}
	return false
}

// written lets a leader go on after its page is committed.
func (p CaptureProtocol) written(n *capturer) {
	page := n.page
	n.page = capturePage{}
	switch {
	case page.sweep:
		n.task = toSearch
	case page.final:
		n.fail() // the run ends
	default:
		n.task = toRead
	}
}

// search lets a leader look for the key of the next row. After the last row the pass is paid.
func (c *captureSteps) search(i int) {
	to := c.from
	n := &to.node[i]
	f, b := &n.feed, &n.batch
	for n.next < maxKeys && (to.row[n.next] == 0 || c.p.off(SweepRows)) {
		n.next++
	}
	if b.missed { // no sweep, and the pass is owed still
		n.fail()
		c.add(failsRun, i, 0, to)
		return
	}
	if n.next == maxKeys {
		if f.owed == inBatch || c.p.off(PassWhole) {
			f.owed = 0
		}
		if f.deletes == inBatch {
			f.deletes = 0
		}
		if c.p.off(DuringPass) {
			f.pending = 0
		}
		n.fail()
		c.add(pays, i, 0, to)
		return
	}
	k := n.next
	n.next++
	n.page.look(&to.redis, k)
	n.page.sweep, n.page.value, n.page.epoch = true, 0, n.epoch
	if c.p.off(SweepSearches) {
		n.page.has = !b.found.has(k)
	} else {
		n.page.has = n.page.gone
	}
	if n.task = toReceive; !n.page.has && c.p.off(SweepSeen) {
		n.page, n.task = capturePage{}, toSearch
	}
	c.add(searches, i, k, to)
}

// receive lets a leader wait until the stream was received up to the search for a missing key.
func (c *captureSteps) receive(i int) {
	to := c.from
	n, m := &to.node[i], &to.redis
	f, b := &n.feed, &n.batch
	confirmed := b.owed == owesDelete
	if !c.p.off(SweepSeen) && !c.p.noteSeen(m, n) {
		n.fail()
		c.add(failsRun, i, 0, to)
		return
	}
	switch {
	case n.page.has && confirmed:
		n.task = toWrite
	case n.page.has && (!f.joined || f.at != m.at) && !c.p.off(SweepReceives):
		return
	case n.page.has && f.emptied && c.p.OnFlush != FlushDelete && !c.p.off(SweepSpares):
		n.fail()
	case !n.page.has, f.emptied && !c.p.off(SweepSpares), f.pending.has(n.page.key) && !b.broke && !c.p.off(SweepPending):
		n.page, n.task = capturePage{}, toSearch
	default:
		n.task = toWrite
	}
	c.add(receivesAll, i, 0, to)
}
