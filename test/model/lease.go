package model

// leaseSteps collects the steps from one state.
type leaseSteps struct {
	p    LeaseProtocol
	from Lease
	all  []Step[Lease]
}

func (c *leaseSteps) add(act uint8, node int, to Lease) {
	c.all = append(c.all, Step[Lease]{To: to, Act: act, Node: int8(node)})
}

// Steps implements Protocol.
func (p LeaseProtocol) Steps(s Lease, into []Step[Lease]) []Step[Lease] {
	c := leaseSteps{p, s, into}
	c.redis()
	for i := range p.Nodes {
		switch n := s.node[i]; {
		case n.suspended:
			to := s
			to.node[i].suspended = false
			c.add(wakes, i, to)
		case n.waits && n.answer == none:
			if !p.Calm {
				c.timeOut(i)
			}
		case n.waits:
			c.read(i, s)
			if !p.Calm {
				c.unknown(losesAnswer, i, s)
			}
		case n.leads:
			c.lead(i)
		default:
			c.campaign(i)
		}
	}
	c.tick(-1)
	if !p.Calm {
		c.faults()
	}
	return c.all
}

// redis lets Redis execute any of the requests that are on their way. So requests overtake each other.
func (c *leaseSteps) redis() {
	for k, q := range c.from.net {
		if q.kind == 0 {
			continue
		}
		to := c.from
		to.net[k] = request{}
		first := len(c.all)
		broken := c.p.handle(&to, q)
		if i := q.owner.node(); !q.late && to.node[i].answer > renewed {
			// The node reads such an answer at once or never. Until it reads the answer, it behaves like a node that has lost the answer.
			if !c.p.Calm {
				c.unknown(handles, i, to)
			}
			c.read(i, to)
		} else {
			c.add(handles, i, to)
		}
		if q.late = true; to.spent.Twice < c.p.Bounds.Twice && !c.p.Calm && to.send(c.p, q) {
			to.spent.Twice++
			c.add(handlesTwice, q.owner.node(), to)
		}
		for j := range c.all[first:] {
			c.all[first+j].Detail, c.all[first+j].Broken = uint8(k)+1, broken
		}
	}
}

// timeOut lets a node give up an attempt without an answer. The request is lost, or arrives late.
func (c *leaseSteps) timeOut(i int) {
	to := c.from
	for k, q := range to.net {
		if q.kind != 0 && !q.late && q.kind != release && q.owner.node() == i {
			to.net[k] = request{}
			c.unknown(timesOut, i, to)
			if q.late = true; !c.p.Calm && to.send(c.p, q) {
				c.unknown(timesOutLate, i, to)
			}
		}
	}
}

// unknown ends an attempt whose outcome is unknown. The deadline does not move.
func (c *leaseSteps) unknown(act uint8, i int, to Lease) {
	n := &to.node[i]
	if c.p.off(UnknownMovesNothing) && n.leads && n.window > 0 {
		n.extend(c.p.window(i), n.age)
	}
	n.waitsNoMore()
	c.add(act, i, to)
}

// campaign lets a standby ask for the lock. After an attempt of unknown outcome it asks as the same owner.
func (c *leaseSteps) campaign(i int) {
	to := c.from
	n := &to.node[i]
	if n.uuid == 0 {
		n.uuid = to.freshUUID(i)
	}
	if n.uuid == 0 || !to.send(c.p, request{kind: acquire, owner: to.owner(i), floor: n.floor}) {
		return
	}
	n.waits = true
	c.add(asks, i, to)
}

// read lets a node read the answer, which may be late.
func (c *leaseSteps) read(i int, to Lease) {
	n := &to.node[i]
	a, age := n.answer, n.age
	n.learn(n.answered)
	if c.p.off(TrustFromSending) {
		age = 0
	}
	epoch := n.answered
	switch a {
	case won:
		n.waitsNoMore()
		if age >= c.p.window(i) {
			c.release(i, to) // too late to start any work
			return
		}
		n.leads, n.epoch = true, epoch
		n.extend(c.p.window(i), age)
		c.add(leadsFrom, i, to)
	case held, wait:
		n.waitsNoMore()
		c.add(hearsHeld+uint8(a-held), i, to)
	case renewed:
		n.waitsNoMore()
		if n.window > 0 || c.p.off(NeverPastH) {
			n.extend(c.p.window(i), age)
		}
		c.add(extends, i, to)
	case lost:
		n.waitsNoMore()
		if !c.p.off(LostStops) {
			c.p.standBy(n)
		}
		c.add(hearsLost, i, to)
	case prove:
		n.answer, n.answered = none, 0
		if n.window == 0 && !c.p.off(ProofNeverPastH) && !c.p.off(NeverPastH) {
			n.waitsNoMore()
			c.add(timesOut, i, to)
		} else if to.send(c.p, request{kind: renew, owner: to.owner(i), epoch: n.epoch, proof: true}) {
			c.add(proves, i, to)
		}
	}
}

// lead lets a leader renew, write into the database, and end its term.
func (c *leaseSteps) lead(i int) {
	to := c.from
	n := &to.node[i]
	q := request{kind: renew, owner: to.owner(i), epoch: n.epoch}
	if due := n.window < c.p.window(i); due && (n.window > 0 || c.p.off(NeverPastH)) && to.send(c.p, q) {
		n.waits = true
		c.add(renews, i, to)
	}
	c.release(i, c.from)
	if to = c.from; c.p.off(ReleaseAfterWork) && c.p.acts(*n) && to.send(c.p, request{kind: release, owner: to.owner(i), late: true}) {
		c.add(releasesEarly, i, to)
	}
	c.write(i)
	if to = c.from; c.p.off(BootClock) && !c.p.Calm {
		n.suspended = true
		c.add(suspends, i, to)
	}
}

// release ends a term: the work has returned, or the process has died at H. The release arrives at once, late, or never.
func (c *leaseSteps) release(i int, to Lease) {
	q := request{kind: release, owner: to.owner(i), late: true}
	c.p.standBy(&to.node[i])
	unheard := to
	if !c.p.Calm && to.send(c.p, q) {
		c.add(endsLate, i, to)
	} else if !c.p.Calm {
		c.add(endsUnheard, i, unheard)
	}
	to = unheard
	c.p.handle(&to, q)
	c.add(ends, i, to)
}

// write lets a leader take the fence, raise its epoch above the fence, or commit. A commit can happen past H, if the process was suspended.
func (c *leaseSteps) write(i int) {
	if !c.p.Database {
		return
	}
	to := c.from
	n := &to.node[i]
	same := to.fence == n.epoch && c.p.off(FenceOwner)
	switch {
	case n.wrote && n.holds && to.fence == n.epoch:
		c.add(commits, i, to)
	case n.wrote && (same || c.p.off(Fence)):
		c.add(commits, i, to)
		c.all[len(c.all)-1].Broken = c.p.broken(NoneCommits)
	case n.wrote || n.window == 0:
	case to.fence < n.epoch || same:
		for j := range to.node {
			to.node[j].holds = j == i
		}
		to.fence, n.wrote = n.epoch, true
		c.add(takesFence, i, to)
	case c.p.off(Raise):
		c.add(raises, i, to)
		c.all[len(c.all)-1].Broken = c.p.broken(LeaderWrites)
	case to.redis.lock == to.owner(i):
		n.epoch = max(to.redis.epoch, to.fence+1)
		to.redis.epoch, to.highest = n.epoch, max(to.highest, n.epoch)
		n.learn(n.epoch)
		c.add(raises, i, to)
	default:
		c.p.standBy(n)
		c.add(hearsLost, i, to)
	}
}

// tick lets one tick pass. The clock of the node slow, if it is not -1, misses the tick.
func (c *leaseSteps) tick(slow int) {
	to := c.from
	for i := range to.node[:c.p.Nodes] {
		n := &to.node[i]
		if i == slow {
			continue
		}
		if n.window > 0 && !n.suspended {
			n.window--
		}
		if n.waits && n.age < c.p.window(i) {
			n.age++
		}
	}
	to.redis.tick()
	to.copied.tick()
	if slow >= 0 {
		to.spent.Drifts++
		c.add(drifts, slow, to)
	} else if to != c.from {
		c.add(ticks, -1, to)
	}
}

func (r *store) tick() {
	if r.lease > 0 {
		if r.lease--; r.lease == 0 {
			r.lock = 0
		}
	}
	if r.left > 0 {
		r.left--
	}
}

// faults lets Redis restart with all data, with an old copy of the data, or without data; and clocks go wrong.
func (c *leaseSteps) faults() {
	b := c.p.Bounds
	if c.from.spent.Incarnations < b.Incarnations {
		c.incarnation(restarts, c.from.redis)
		c.incarnation(losesData, store{})
		if c.from.spent.Copies > 0 {
			c.incarnation(rewinds, c.from.copied)
		}
		if c.from.spent.Copies < b.Copies {
			to := c.from
			to.copied = to.redis
			to.spent.Copies++
			c.add(copies, -1, to)
		}
	}
	if c.from.spent.Drifts < b.Drifts {
		for i := range c.p.Nodes {
			c.tick(i)
		}
	}
	if c.from.spent.SetBacks < b.SetBacks {
		to := c.from
		to.spent.SetBacks++
		c.add(setBack, -1, to)
	}
}

// incarnation starts another incarnation of Redis with the given data. No word that an earlier incarnation knew is a proof any more.
func (c *leaseSteps) incarnation(act uint8, data store) {
	to := c.from
	to.redis = data
	to.redis.confirmed = false
	to.redis.wait = min(data.wait, 1)
	for i := range to.net {
		to.net[i].proof = false
	}
	if to.spent.Incarnations++; to.spent.Incarnations == c.p.Bounds.Incarnations {
		to.copied = store{}
	}
	c.add(act, -1, to)
}

// handle lets Redis execute one request atomically. The answer reaches a node that still waits for it.
func (p LeaseProtocol) handle(s *Lease, q request) (broken string) {
	a, epoch := none, uint8(0)
	switch q.kind {
	case acquire:
		a, epoch, broken = p.handleAcquire(s, q)
	case renew:
		a = p.handleRenew(&s.redis, q)
	case release:
		if s.redis.lock == q.owner || p.off(ReleaseOwn) {
			s.redis.lock, s.redis.lease = 0, 0
		}
	}
	if n := &s.node[q.owner.node()]; !q.late && q.kind != release {
		n.answer, n.answered = a, epoch
	}
	return broken
}

// handleAcquire is lock_acquire.lua.
func (p LeaseProtocol) handleAcquire(s *Lease, q request) (answer, uint8, string) {
	r := &s.redis
	elsewhere := !r.confirmed
	floor := q.floor
	if p.off(FloorShowsLoss) {
		floor = 0
	}
	if elsewhere && !p.off(Quarantine) && (r.epoch > 0 || r.wait > 0 || r.proof || floor > 0) && r.wait != 2 && r.lock != q.owner {
		r.wait, r.left = 2, p.quarantine(q.owner.node())
	}
	switch {
	case r.lock == q.owner && !p.off(SameOwner):
		r.lease = p.ttl(q.owner.node())
		return won, r.epoch, ""
	case r.lock != 0 && !p.off(SetIfAbsent):
		return held, r.epoch, ""
	case r.left > 0 && r.wait == 2 && elsewhere:
		return wait, r.epoch, ""
	case s.spent.Terms == p.Bounds.Terms && !p.Calm:
		return wait, r.epoch, "" // the bounds allow no further term
	}
	epoch := r.epoch
	if !p.off(EpochAboveFloor) {
		epoch = max(epoch, q.floor)
	}
	if elsewhere && !p.off(EpochAboveClock) && s.spent.SetBacks == 0 {
		epoch = max(epoch, s.highest) // Redis' TIME is above all epochs that were counted from an earlier time
	}
	epoch++
	broken := ""
	if epoch <= q.floor || epoch <= s.highest && s.spent.SetBacks == 0 {
		broken = p.broken(EpochRises)
	}
	s.highest = max(s.highest, epoch)
	s.spent.Terms++
	*r = store{lock: q.owner, lease: p.ttl(q.owner.node()), epoch: epoch, confirmed: true}
	return won, epoch, broken
}

// quarantine returns how long no new owner may win.
func (p LeaseProtocol) quarantine(node int) uint8 {
	if p.off(LongestLease) {
		return p.ttl(node)
	}
	return p.ttl(0)
}

// handleRenew is lock_renew.lua.
func (p LeaseProtocol) handleRenew(r *store, q request) answer {
	ttl := p.ttl(q.owner.node())
	if r.lock != q.owner && !p.off(RenewOwn) {
		stale := r.lock != 0 && r.epoch < q.epoch
		if r.confirmed && p.off(LostIfRunOut) && r.lock == 0 {
			return renewed
		}
		if r.confirmed || r.epoch > q.epoch && !p.off(LaterTermStays) || r.lock != 0 && !stale || p.off(Restore) {
			return lost
		}
	}
	if r.lock == q.owner && r.confirmed {
		r.lease = ttl
		return renewed
	}
	if !r.confirmed && !q.proof && !p.off(Proof) {
		r.proof = true
		return prove
	}
	if !p.off(RestoredWithKey) || r.lock != 0 {
		r.lock, r.lease = q.owner, ttl
	}
	r.epoch, r.confirmed, r.proof, r.wait, r.left = max(r.epoch, q.epoch), true, false, 0, 0
	return renewed
}
