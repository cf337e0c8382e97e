package model

// captureSteps collects the steps from one state.
type captureSteps struct {
	p    CaptureProtocol
	from Capture
	all  []Step[Capture]
}

func (c *captureSteps) add(act uint8, node int, detail uint8, to Capture) {
	c.all = append(c.all, Step[Capture]{To: to, Act: act, Node: int8(node), Detail: detail})
}

// Steps implements Protocol.
func (p CaptureProtocol) Steps(s Capture, into []Step[Capture]) []Step[Capture] {
	c := captureSteps{p, s, into}
	if !p.Calm {
		c.application()
		c.faults()
	}
	if to := s; s.owner != 0 {
		to.endOrphan()
		c.add(orphanEnds, -1, 0, to)
		to = s
		broken := p.commit(&to, s.orphan)
		for i := range to.node {
			if n := &to.node[i]; n.epoch+1 == s.owner && !s.orphan.sweep {
				n.page.done = n.task == toWrite
				n.feed.where = isPage
				if s.orphan.final {
					n.feed.where = isFinal
				}
			}
		}
		to.endOrphan()
		c.add(orphanCommits, -1, 0, to)
		c.all[len(c.all)-1].Broken = broken
	}
	for i := range p.Nodes {
		if s.node[i].epoch == 0 {
			c.elect(i)
		} else {
			c.stream(i)
			c.lead(i)
		}
	}
	return c.all
}

func (s *Capture) endOrphan() { s.orphan, s.owner = capturePage{}, 0 }

// write appends a command to the history. The backlog is bounded.
func (m *master) write(p CaptureProtocol, command uint8) {
	m.log[m.at.offset] = command
	m.at.offset++
	if m.at.offset > p.Backlog {
		m.oldest = max(m.oldest, m.at.offset-p.Backlog)
	}
	for i := range m.oldest {
		m.log[i] = 0
	}
}

// application lets the application write, delete, or call FLUSHALL.
func (c *captureSteps) application() {
	b, spent := c.p.Bounds, c.from.spent
	for k := range uint8(maxKeys) {
		if spent.Writes == b.Writes {
			break
		}
		to := c.from
		to.spent.Writes++
		to.redis.write(c.p, changeOf+k)
		to.redis.wiped &^= 1 << k
		if to.redis.value[k] != 0 {
			to.redis.value[k] = 0
			c.add(deletesKey, -1, k, to)
		}
		to.redis.value[k] = to.spent.Writes
		c.add(setsKey, -1, k, to)
	}
	if to := c.from; spent.Flushes < b.Flushes {
		to.spent.Flushes++
		for k, value := range to.redis.value {
			if value != 0 {
				to.redis.wiped |= 1 << k
			}
		}
		to.redis.value = [maxKeys]uint8{}
		to.redis.write(c.p, flushAll)
		c.add(emptiesRedis, -1, 0, to)
	}
}

// faults lets the replica be promoted, or the master restart with a snapshot. Both lose what the copy does not have.
func (c *captureSteps) faults() {
	b, spent := c.p.Bounds, c.from.spent
	copied := spent.Failovers < b.Failovers || spent.Restarts < b.Restarts
	if to := c.from; copied && spent.Saves < b.Saves && to.saved != to.redis {
		to.saved = to.redis
		to.spent.Saves++
		c.add(saves, -1, 0, to)
	}
	if to := c.from; spent.Failovers < b.Failovers {
		to.spent.Failovers++
		old := to.saved.at
		to.another()
		to.redis.at.offset, to.redis.second = old.offset, old
		c.add(promotes, -1, 0, to)
	}
	if to := c.from; spent.Restarts < b.Restarts {
		to.spent.Restarts++
		to.another()
		to.redis.second, to.redis.oldest, to.redis.log = offsetIn{}, 0, [maxCommands]uint8{}
		c.add(forgets, -1, 0, to)
	}
}

// another replaces the master by its copy, with a new history. All streams break.
func (s *Capture) another() {
	s.ids++
	s.redis = s.saved
	s.redis.at = offsetIn{id: s.ids}
	for i := range s.node {
		s.node[i].feed.joined = false
	}
}

// elect lets a node win an election. The leader before it may still believe that it leads.
func (c *captureSteps) elect(i int) {
	to := c.from
	if to.spent.Terms == c.p.Bounds.Terms && (!c.p.Calm || to.node[0].epoch != 0) {
		return
	}
	to.spent.Terms++
	to.node[i] = capturer{epoch: to.spent.Terms}
	c.add(elects, i, 0, to)
}

// owe records that a pass over all keys is owed.
func (n *capturer) owe(breaks bool) {
	n.feed.owed = afterIt
	n.batch.broke = n.batch.taken && (n.batch.broke || breaks)
}

// owes returns what the next place has to say.
func (f *captureFeed) owes() owing {
	switch {
	case f.owed == 0:
		return owesNone
	case f.deletes > 0:
		return owesDelete
	}
	return owesPass
}

// stream lets a leader join the stream, or receive the next command. A run may go on meanwhile, or wait.
func (c *captureSteps) stream(i int) {
	to := c.from
	n, m := &to.node[i], &to.redis
	f := &n.feed
	switch {
	case f.where == isOther && f.at.id == 0:
		return // the feed has not begun
	case !f.joined:
		c.p.join(m, n)
		c.add(joins, i, 0, to)
	case f.at.offset < m.at.offset && f.at.offset >= m.oldest:
		command := m.log[f.at.offset]
		f.at.offset++
		switch {
		case command != flushAll:
			f.pending |= 1 << (command - changeOf)
		case !c.p.off(FlushNoticed):
			f.emptied = true
		}
		c.add(receives, i, command, to)
	case f.at.offset < m.at.offset: // the server drops a follower that is too slow
		f.joined = false
		c.add(dropped, i, 0, to)
	}
}

// join lets a leader join the stream of the master, at the mark of its feed if that is possible.
func (p CaptureProtocol) join(m *master, n *capturer) {
	f := &n.feed
	f.joined = true
	if p.lacks(m, f.at) {
		if n.batch.taken && !n.batch.lost {
			n.batch.lost, n.batch.base, n.batch.seen = true, f.base, f.seen
		}
		f.at, f.base, f.seen = m.at, offsetIn{}, 0
		if !p.off(LackOwes) {
			n.owe(true)
		}
		return
	}
	if f.at.id != m.at.id {
		if p.mayHaveLost(m, f.at, f.seen) {
			n.owe(true)
		}
		n.batch.promoted = n.batch.taken
		f.at.id = m.at.id
	}
}

// lead lets a leader do the next step of its run, or end its run or its term at any point.
func (c *captureSteps) lead(i int) {
	to := c.from
	n := &to.node[i]
	if !c.p.Calm {
		*n = capturer{}
		c.add(crashes, i, 0, to)
	}
	if to = c.from; n.task > toBegin {
		n.fail()
		c.add(failsRun, i, 0, to)
	}
	to = c.from
	switch n.task {
	case toClaim:
		c.claim(i)
	case toBegin:
		c.begin(i)
	case toTake:
		c.take(i)
	case toRead:
		c.read(i)
	case toAsk:
		c.ask(i)
	case toWrite:
		c.write(i)
	case toSearch:
		c.search(i)
	case toReceive:
		c.receive(i)
	}
}

func (n *capturer) fail() { n.task, n.next, n.page = toBegin, 0, capturePage{} }

// claim lets a leader take the fence. It waits for a COMMIT that is on its way, because its transaction has locked the fence.
func (c *captureSteps) claim(i int) {
	to := c.from
	n := &to.node[i]
	switch {
	case to.owner != 0 && !c.p.off(FenceLocked):
	case to.fence > n.epoch:
		*n = capturer{}
		c.add(stepsDown, i, 0, to)
	default:
		to.fence, n.task = n.epoch, toBegin
		c.add(claims, i, 0, to)
	}
}

// begin begins a run: the leader reads the place, behind a lock of the fence.
func (c *captureSteps) begin(i int) {
	to := c.from
	n := &to.node[i]
	f := &n.feed
	switch {
	case to.owner != 0 && !c.p.off(FenceLocked):
		return
	case to.fence != n.epoch && !c.p.off(OwnEpoch):
		*n = capturer{}
		c.add(stepsDown, i, 0, to)
		return
	case f.where == isBase && !n.batch.taken && f.pending == 0 && !f.emptied && f.owed == 0 && f.noted == owesNone && f.at == f.base:
		return // there is nothing to do
	}
	if n.task = toTake; f.where == isOther && !(c.p.off(OtherPlace) && f.at.id != 0) {
		n.restart(to.place)
	} else {
		c.p.settle(n, to.place)
	}
	c.add(begins, i, 0, to)
}

// restart lets the feed begin again at the place in the database.
func (n *capturer) restart(at capturePlace) {
	n.feed, n.batch = captureFeed{at: at.at, base: at.at, seen: at.seen, noted: at.owed, where: isBase}, captureBatch{}
	if at.at.id == 0 || at.owed != owesNone {
		n.feed.owed = afterIt
	}
	if at.owed == owesDelete {
		n.feed.deletes = afterIt
	}
}

// settle finds out from the place which pages of the last batch are committed.
func (p CaptureProtocol) settle(n *capturer, at capturePlace) {
	f, b := &n.feed, n.batch
	moved := f.where == isFinal || b.pass && f.where == isPage
	if moved && b.taken && !b.lost {
		f.base = b.at
	}
	if f.where != isFinal && !p.off(PendingAgain) {
		f.pending |= b.keys
	}
	f.noted, f.where, n.batch = at.owed, isBase, captureBatch{}
}

// take lets a leader take the next batch, after its feed has received all commands.
func (c *captureSteps) take(i int) {
	to := c.from
	n := &to.node[i]
	f := &n.feed
	if !f.joined || f.at != to.redis.at {
		return
	}
	if f.emptied {
		if c.p.OnFlush == FlushStop {
			return // the job waits for an operator
		}
		f.emptied = false
		if n.owe(true); c.p.OnFlush == FlushDelete {
			f.deletes = afterIt
		}
	}
	if f.owed == 0 && f.pending == 0 && f.owes() == f.noted && f.at == f.base {
		return // there is nothing to do
	}
	n.batch = captureBatch{taken: true, pass: f.owed > 0, at: f.at, owed: f.owes(), was: f.noted}
	if n.batch.pass {
		f.owed, f.deletes = inBatch, min(f.deletes, inBatch)
		n.batch.witness = to.redis.at.id
		if c.p.off(PassNoted) {
			n.batch.owed = owesNone
		}
	} else {
		n.batch.keys, f.pending = f.pending, 0
	}
	n.next, n.task = 0, toRead
	c.add(takesKeys, i, 0, to)
}

// look notes whether a key is there now.
func (g *capturePage) look(m *master, k uint8) {
	g.has, g.key, g.value = true, k, m.value[k]
	g.gone, g.wiped, g.early = g.value == 0, m.wiped.has(k), m.at
}
