package linear

import (
	"context"
	"slices"
	"sync"
	"time"

	"baton/internal/testsupport"
)

// rage executes the schedule, and returns when every fault is over. If the place of a fault is broken for longer than planned, later
// faults at other places may begin first.
func (l *lab) rage(faults []fault) {
	start := time.Now()
	var lasting sync.WaitGroup
	for pending := slices.Clone(faults); len(pending) > 0; time.Sleep(2 * time.Millisecond) {
		var s *strike
		i := slices.IndexFunc(pending, func(f fault) bool {
			if time.Since(start) >= f.at {
				s = l.claim(f)
			}
			return s != nil
		})
		if i < 0 {
			l.meddle()
			continue
		}
		f := pending[i]
		pending = slices.Delete(pending, i, i+1)
		end := l.strike(s)
		lasting.Go(func() {
			time.Sleep(f.lasts)
			if err := end(); err != nil {
				l.wrong("%s cannot be ended: %v", f, err)
			}
			l.mu.Lock()
			s.ended = now()
			l.mu.Unlock()
			l.log.add("over: %s (%s)", f.kind, s.target)
		})
	}
	lasting.Wait()
}

// claim reserves the place of a fault, unless an earlier fault still lasts at this place.
func (l *lab) claim(f fault) *strike {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.place == atStore && now() < l.meddling {
		return nil
	}
	for _, s := range l.strikes {
		if s.place == f.place && s.ended == 0 {
			return nil
		}
	}
	s := &strike{fault: f, begun: now()}
	l.strikes = append(l.strikes, s)
	return s
}

// meddle makes the nodes send forbidden requests from time to time. It does so while the store is whole and has heard from the leader
// since the store was last broken. No fault breaks the store during that time.
func (l *lab) meddle() {
	until := l.mayMeddle(l.history.lastGrant())
	if until == 0 {
		return
	}
	for _, u := range l.units {
		u.meddle(until)
	}
}

// mayMeddle returns the time until which nodes may meddle, or zero. granted is the time of the request by which the store last heard from
// a leader.
func (l *lab) mayMeddle(granted int64) (until int64) {
	const lasts, every = int64(lease / 5), int64(lease / 3)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now()
	if at < l.meddling+every || granted < at-int64(lease/2) {
		return 0
	}
	for _, s := range l.strikes {
		if s.place == atStore && (s.ended == 0 || s.ended >= granted) {
			return 0
		}
	}
	l.meddling = at + lasts
	return l.meddling
}

// target chooses the node that a fault hits. The node runs, and no other fault has broken its way to the servers.
func (l *lab) target(f fault) int {
	node := f.node
	if leads := l.history.leader(); leads >= 0 && (f.leader || f.kind == killLeader || f.kind == freezeLeader) {
		node = leads
	}
	for range nodes {
		if l.units[node].running() && !l.hit(f, nodeID(node)) {
			break
		}
		node = (node + 1) % nodes
	}
	return node
}

func (l *lab) hit(f fault, target string) bool {
	if f.place != onWay && f.place != onOther {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.strikes {
		if (s.place == onWay || s.place == onOther) && s.ended == 0 && s.target == target {
			return true
		}
	}
	return false
}

// strike begins a fault, and returns the function that ends the fault.
func (l *lab) strike(s *strike) (end func() error) {
	done := func() error { return nil }
	if s.place == atStore || s.place == atOther {
		target, end, err := l.ground.begin(s.fault)
		s.target = target
		l.log.add("FAULT %v (%s)", s.fault, target)
		if err != nil {
			l.wrong("%s cannot be begun: %v", s.kind, err)
		}
		if end == nil {
			return done
		}
		return end
	}
	node := l.target(s.fault)
	u := l.units[node]
	l.mu.Lock()
	s.target = nodeID(node)
	l.mu.Unlock()
	l.log.add("FAULT %v (%s)", s.fault, s.target)
	switch s.kind {
	case killLeader, killNode:
		u.kill()
	case endNode:
		u.end()
	case freezeLeader, freezeNode:
		life := u.freeze()
		return func() error { u.thaw(life); return nil }
	case clockAhead, clockBehind:
		by := time.Hour
		if s.kind == clockBehind {
			by = -by
		}
		u.skew(by)
		return func() error { u.skew(0); return nil }
	case stepDown:
		return func() error { l.order(); return nil }
	default:
		return l.breakWay(s.kind, l.ground.ways(node, s.draw))
	}
	return done
}

// order orders the leader to step down, if a node leads and the store accepts the order.
func (l *lab) order() {
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
	defer cancel()
	l.log.add("stepdown said: %v", l.ground.stepDown(ctx))
}

func (l *lab) breakWay(k kind, ways []*testsupport.Proxy) (end func() error) {
	each := func(do func(*testsupport.Proxy)) {
		for _, p := range ways {
			do(p)
		}
	}
	end = func() error { each((*testsupport.Proxy).Unhang); return nil }
	switch k {
	case wayCut:
		each((*testsupport.Proxy).Cut)
	case wayForget:
		each((*testsupport.Proxy).Strand)
	case wayBlock:
		each((*testsupport.Proxy).Block)
		end = func() error { each((*testsupport.Proxy).Unblock); return nil }
	case wayHang:
		each((*testsupport.Proxy).Hang)
	case wayReplies:
		each((*testsupport.Proxy).HangReplies)
	case wayRequests:
		each((*testsupport.Proxy).HangRequests)
	}
	return end
}
