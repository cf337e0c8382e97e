package model

// ownerless lets Redis execute late requests, and the database commit a transaction whose client has gone, or roll it back.
func (c *flushSteps) ownerless() {
	for k, m := range c.from.net {
		if to := c.from; m.kind != 0 {
			to.net[k] = message{}
			c.p.execute(&to, m)
			c.add(executesLate, -1, uint8(k), to)
		}
	}
	if to := c.from; to.orphan.state != 0 {
		to.orphan = transaction{}
		c.add(orphanEnds, -1, 0, to)
		broken := c.p.commit(&to, c.from.orphan)
		c.add(orphanCommits, -1, 0, to)
		c.all[len(c.all)-1].Broken = broken
	}
}

// faults lets Redis lose its last writes, the ledger be pruned, and an operator change the configuration.
func (c *flushSteps) faults() {
	b, spent := c.p.Bounds, c.from.spent
	if to := c.from; spent.Saves < b.Saves && (spent.Saves == 0 || to.saved != to.redis) {
		to.saved = to.redis
		to.spent.Saves++
		c.add(saves, -1, 0, to)
	}
	if to := c.from; spent.Saves > 0 && spent.Rewinds < b.Rewinds && to.saved != to.redis {
		c.p.rewind(&to)
		c.add(fallsBack, -1, 0, to)
	}
	if to := c.from; spent.Prunes < b.Prunes {
		for id := range to.tables.ledger {
			if uint8(id) != to.tables.newest || c.p.off(NewestStays) {
				to.tables.ledger[id] = 0
			}
		}
		to.saved, to.net = to.redis, [maxMessages]message{} // a snapshot is younger than a week
		to.spent.Prunes++
		c.add(prunes, -1, 0, to)
	}
	if to := c.from; spent.Settings < b.Settings {
		to.large = !to.large
		to.spent.Settings++
		c.add(resizes, -1, 0, to)
	}
}

// rewind lets Redis continue with an earlier state. What Redis has lost itself is no fault of the flush: see section 6.
func (p FlushProtocol) rewind(s *Flush) {
	old := s.redis
	s.redis = s.saved
	if s.spent.Rewinds++; s.spent.Rewinds == p.Bounds.Rewinds {
		s.saved, s.spent.Saves = keyspace{}, p.Bounds.Saves
	}
	if p.Strict {
		return
	}
	all, r := changes(1)<<s.written-1, s.redis
	for job := range s.gone {
		s.gone[job] |= all &^ (r.live | r.stage | s.tables.rows[job])
	}
	unbound := r.live
	if !r.sealed {
		unbound |= r.stage
	}
	s.again |= unbound & s.staged
	marked, lost := r.index|r.waits, old.index&^r.index
	if old.id != r.id {
		lost |= old.waits
	}
	for k := range uint8(maxKeys) {
		alone := lost.has(k) || r.value[k] != s.tables.row[k] && !marked.has(k)
		if r.value[k] != old.value[k] || alone && !p.Atomic {
			s.ahead |= 1 << k // a mark that is written apart from its change may be lost alone
		}
	}
}
