package chaos

import (
	"errors"
	"slices"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// strike is a fault that was executed.
type strike struct {
	fault
	target       string
	begun, ended time.Time // ended is zero while the fault lasts
}

// rage executes the schedule. It returns when no fault is left, except for nodes that must still be restarted.
func (l *lab) rage(schedule []fault) {
	start := time.Now()
	l.heals = map[int]heal{}
	for len(schedule) > 0 || len(l.heals) > 0 {
		l.keeper.Tick()
		l.healDue(time.Now())
		if len(schedule) > 0 && !time.Now().Before(due(start, schedule[0])) && !l.broken(schedule[0].place) {
			l.strike(schedule[0])
			schedule = schedule[1:]
		}
		time.Sleep(2 * time.Millisecond)
	}
	l.background.Wait()
}

// due returns the time when a fault must begin: at the fault's time, or soon after the next slot.
func due(start time.Time, f fault) time.Time {
	at := start.Add(f.at)
	if f.intoSlot < 0 {
		return at
	}
	into := time.Duration(at.UnixNano()) % slotEvery
	return at.Add(slotEvery - into + f.intoSlot)
}

// heal ends a fault at its time.
type heal struct {
	at time.Time
	do func()
}

func (l *lab) healDue(now time.Time) {
	for i, h := range l.heals {
		if !now.Before(h.at) {
			delete(l.heals, i)
			h.do()
			l.over(i)
		}
	}
}

// broken reports whether an earlier fault still lasts at a place.
func (l *lab) broken(p place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.strikes {
		if s.place == p && s.ended.IsZero() {
			return true
		}
	}
	return false
}

// over records the end of a fault.
func (l *lab) over(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.strikes[i]
	s.ended = time.Now()
	l.At(s.ended, "over: %s (%s)", s.kind, s.target)
}

// strike executes a fault.
func (l *lab) strike(f fault) {
	node := f.node
	if leads := l.leader(); leads >= 0 && (f.leader || f.kind == killLeader || f.kind == freezeLeader) {
		node = leads
	}
	unit, node := l.keeper.Standing(node)
	s := strike{fault: f, target: unit.ID, begun: time.Now()}
	if slices.Contains([]place{atRedis, atDB, atPooler, ofPooler, atCluster}, f.place) {
		s.target = string(f.place)
	}
	l.At(s.begun, "FAULT %v (%s)", f, s.target)
	l.mu.Lock()
	i := len(l.strikes)
	l.strikes = append(l.strikes, s)
	l.mu.Unlock()

	if until := l.begin(i, f, unit, l.ways[node]); until != nil {
		l.heals[i] = heal{s.begun.Add(f.lasts), until}
	}
}

// begin begins a fault, and returns the function that ends the fault. It returns nil if the fault ends by itself.
func (l *lab) begin(i int, f fault, u *cluster.Unit, w ways) (end func()) {
	nothing := func() {}
	switch f.kind {
	case killLeader, killNode:
		u.Kill()
		return nothing
	case termNode:
		u.Term()
		return nothing
	case freezeLeader:
		u.Freeze()
		return u.Thaw
	case stepDown:
		l.background.Go(func() {
			said := u.StepDown(l.t.Context())
			l.over(i)
			l.Add("stepdown said: %s", said)
		})
	case redisKill:
		l.background.Go(func() { l.crash(i, l.redis.Daemon(), f.lasts) })
	case dbKill:
		l.background.Go(func() { l.crash(i, l.db.Server().Daemon(), f.lasts) })
	case redisFreeze:
		l.background.Go(func() { l.freeze(i, l.redis.Daemon(), f.lasts) })
	case dbFreeze:
		l.background.Go(func() { l.freeze(i, l.db.Server().Daemon(), f.lasts) })
	case slotMoves, masterFailover, masterKill:
		l.beginInCluster(i, f)
	case poolerKill:
		l.background.Go(func() { l.crash(i, l.db.Pooler().Daemon, f.lasts) })
	case poolerFreeze:
		l.background.Go(func() { l.freeze(i, l.db.Pooler().Daemon, f.lasts) })
	case poolerSession, poolerStatement, poolerShort:
		return l.setPooler(f.kind)
	case redisCut, redisForget, redisBlock, redisHang, redisMute:
		return cutWay(f.kind, w.redis)
	case unplug:
		w.redis.Hang()
		w.db.Hang()
		return func() {
			w.redis.Unhang()
			w.db.Unhang()
		}
	default:
		return cutWay(f.kind, w.db)
	}
	return nil
}

// setPooler changes a setting of the pooler until its end is called.
func (l *lab) setPooler(k kind) (end func()) {
	set := map[kind][3]string{
		poolerSession:   {"pool_mode", "session", "transaction"},
		poolerStatement: {"pool_mode", "statement", "transaction"},
		poolerShort:     {"server_lifetime", "1", "3600"},
	}[k]
	to := func(value string) {
		if err := l.db.Pooler().Set(set[0], value); err != nil {
			l.Wrong("the pooler's %s cannot be set: %v", set[0], err)
		}
	}
	to(set[1])
	return func() { to(set[2]) }
}

func cutWay(k kind, p *testsupport.Proxy) (end func()) {
	switch k {
	case redisCut, dbCut:
		p.Cut()
		return func() {}
	case redisForget, dbForget:
		p.Strand()
		return func() {}
	case redisBlock, dbBlock:
		p.Block()
		return p.Unblock
	case redisHang, dbHang:
		p.Hang()
	case redisMute, dbMute:
		p.HangReplies()
	}
	return p.Unhang
}

// crash kills a server, and restarts the server with its data on disk.
func (l *lab) crash(i int, d *testsupport.Daemon, down time.Duration) {
	err := d.Kill()
	time.Sleep(down)
	l.server(i, errors.Join(err, d.Restart()))
}

func (l *lab) freeze(i int, d *testsupport.Daemon, lasts time.Duration) {
	err := d.Freeze()
	time.Sleep(lasts)
	l.server(i, errors.Join(err, d.Thaw()))
}

func (l *lab) server(i int, err error) {
	if err != nil {
		l.Wrong("this test's own ground is gone: %v", err)
	}
	l.over(i)
}
