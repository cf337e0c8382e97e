package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/test/linear/wire"

	"golang.org/x/sync/errgroup"
)

const masters = 5

// These are the faults of a minority of the masters of a quorum.
const (
	someKill   kind = "SIGKILL of one or two masters"
	someFreeze kind = "SIGSTOP of one or two masters"
	someEmpty  kind = "SIGKILL of one or two masters and loss of their data"
	someAhead  kind = "clocks of one or two masters an hour ahead"
	someBehind kind = "clocks of one or two masters an hour behind"
)

// independent contains five masters that know nothing of each other. One or two of them are broken at a time.
//
// A step of a master's clock ends the leases on that master, as if the master had lost its data without a restart. No node can notice
// this, and no quarantine follows. The protocol tolerates this for a minority of the masters. So no other master is broken from one lease
// before the step until one lease after it. Otherwise a minority that has lost the lock and a master that never had the lock could form a
// majority. A key that was written while the clock was ahead would stay for an hour. So the nemesis restarts such a master without its
// data, as an operator would.
type independent struct {
	redis [masters]*testsupport.Redis
	files [masters]string // the append-only files of the masters
	node  [nodes][]*testsupport.Proxy
}

func newIndependent(t *testing.T) ground {
	t.Helper()
	g := &independent{}
	for m := range g.redis {
		g.redis[m] = testsupport.StartRedis(t, testsupport.RedisAOF(), testsupport.RedisClock())
		g.files[m] = appendOnlyFiles(t, g.redis[m])
		for i := range g.node {
			g.node[i] = append(g.node[i], g.redis[m].Proxy())
		}
	}
	return g
}

func (g *independent) tell(node int, s *wire.Setup) {
	for m, p := range g.node[node] {
		s.Redis = append(s.Redis, g.redis[m].URLThrough(p))
	}
}

// ways returns all ways, or some of them.
func (g *independent) ways(node int, draw uint64) []*testsupport.Proxy {
	return some(g.node[node], draw)
}

func (g *independent) margin() time.Duration { return clockRate + lease/100 }

// stepDown sends the order to all masters, because most masters know the leader.
func (g *independent) stepDown(ctx context.Context) error {
	return together([]int{0, 1, 2, 3, 4}, func(m int) error {
		return stepDownBy(ctx, redisconn.Options{URL: g.redis[m].URL()}, script.String)
	})
}

func (g *independent) traits() []trait {
	return []trait{
		{someKill, atStore, 4, 0, 2},
		{someFreeze, atStore, 3, 0.25, 2},
		{someEmpty, atStore, 4, 0, 2},
		{someAhead, atStore, 2, 0.5, 3},
		{someBehind, atStore, 2, 0.5, 3},
	}
}

func (g *independent) begin(f fault) (target string, end func() error, err error) {
	hit := rand.New(rand.NewPCG(f.draw, 0)).Perm(masters)[:1+f.draw%2]
	begin := func(m int) error { return g.redis[m].Daemon().Kill() }
	over := func(m int) error { return g.redis[m].Daemon().Restart() }
	switch f.kind {
	case someFreeze:
		begin = func(m int) error { return g.redis[m].Daemon().Freeze() }
		over = func(m int) error { return g.redis[m].Daemon().Thaw() }
	case someEmpty:
		over = g.startAnew
	case someAhead, someBehind:
		step := map[kind]time.Duration{someAhead: time.Hour, someBehind: -time.Hour}[f.kind]
		time.Sleep(2 * lease) // until a leader has taken again the masters that it had lost
		begin = func(m int) error { g.redis[m].StepClock(step); return nil }
		over = func(m int) error {
			g.redis[m].StepClock(0)
			err := g.startAnew(m)
			time.Sleep(2 * lease)
			return err
		}
	}
	return fmt.Sprintf("masters %v", hit), func() error { return together(hit, over) }, together(hit, begin)
}

// startAnew kills a master, unless it is already dead, and starts the master without its data.
func (g *independent) startAnew(m int) error {
	d := g.redis[m].Daemon()
	return errors.Join(d.Kill(), os.RemoveAll(g.files[m]), d.Restart())
}

func together(hit []int, do func(m int) error) error {
	var all errgroup.Group
	for _, m := range hit {
		all.Go(func() error { return do(m) })
	}
	return all.Wait()
}
