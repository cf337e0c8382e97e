package chaos

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// strike is a fault as it was carried out.
type strike struct {
	fault
	target       string
	begun, ended time.Time // ended is zero while it lasts
}

// rage carries the schedule out and returns when everything is whole again, but for
// nodes that are yet to be restarted.
func (l *lab) rage(schedule []fault) {
	start := time.Now()
	l.heals = map[int]heal{}
	for len(schedule) > 0 || len(l.heals) > 0 {
		l.supervise()
		l.healDue(time.Now())
		if len(schedule) > 0 && !time.Now().Before(due(start, schedule[0])) && !l.broken(schedule[0].place) {
			l.strike(schedule[0])
			schedule = schedule[1:]
		}
		time.Sleep(2 * time.Millisecond)
	}
	l.background.Wait()
}

// due is when a fault is to happen: at its time, or soon after the next slot.
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

// broken says whether an earlier fault lasts at that place.
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

// over notes the end of a fault.
func (l *lab) over(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.strikes[i]
	s.ended = time.Now()
	l.log.at(s.ended, "over: %s (%s)", s.kind, s.target)
}

// strike carries a fault out.
func (l *lab) strike(f fault) {
	node := f.node
	if leads := l.leader(); leads >= 0 && (f.leader || f.kind == killLeader || f.kind == freezeLeader) {
		node = leads
	}
	for range nodes { // whoever is down already cannot be broken any more
		if !l.units[node].node.Running() {
			node = (node + 1) % nodes
		}
	}
	s := strike{fault: f, target: l.units[node].node.ID, begun: time.Now()}
	if f.place == atRedis || f.place == atDB {
		s.target = string(f.place)
	}
	l.log.at(s.begun, "FAULT %v (%s)", f, s.target)
	l.mu.Lock()
	i := len(l.strikes)
	l.strikes = append(l.strikes, s)
	l.mu.Unlock()

	if until := l.begin(i, f, l.units[node], l.ways[node]); until != nil {
		l.heals[i] = heal{s.begun.Add(f.lasts), until}
	}
}

// begin starts a fault and returns how to end it; nil if it ends by itself.
func (l *lab) begin(i int, f fault, u *unit, w ways) (end func()) {
	nothing := func() {}
	switch f.kind {
	case killLeader, killNode:
		l.kill(u)
		return nothing
	case termNode:
		// Asked twice it would be killed, as programs are.
		if u.node.Running() && !u.frozen && u.termed.IsZero() {
			u.termed = time.Now()
			u.node.Signal(syscall.SIGTERM)
		}
		return nothing
	case freezeLeader:
		u.frozen = true
		u.node.Freeze()
		return func() { l.thaw(u) }
	case stepDown:
		l.background.Go(func() { l.order(i, u.node) })
	case redisKill:
		l.background.Go(func() { l.crash(i, l.redis.Daemon(), f.lasts) })
	case dbKill:
		l.background.Go(func() { l.crash(i, l.db.Server().Daemon(), f.lasts) })
	case redisFreeze:
		l.background.Go(func() { l.freeze(i, l.redis.Daemon(), f.lasts) })
	case dbFreeze:
		l.background.Go(func() { l.freeze(i, l.db.Server().Daemon(), f.lasts) })
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

func (l *lab) thaw(u *unit) {
	u.node.Thaw()
	if u.frozen { // not, if it was killed and started again
		u.frozen, u.thawed = false, time.Now()
	}
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

// crash kills a server and starts it again from what it has on disk.
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
		l.wrong("this test's own ground is gone: %v", err)
	}
	l.over(i)
}

// order has the leader step down, by a command on a node whose way to Redis may be
// broken just now.
func (l *lab) order(i int, n *cluster.Node) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 8*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, l.program, "stepdown", "--wait", "3s", "--config", n.ConfigPath()).CombinedOutput()
	l.over(i)
	text := strings.TrimSpace(string(out))
	if err != nil {
		text += " (" + err.Error() + ")"
	}
	l.log.add("stepdown said: %s", text)
}
