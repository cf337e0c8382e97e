package capture

import (
	"context"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/nemesis"
)

// What a fault does.
const (
	killLeader   = "SIGKILL of the leader"
	killNode     = "SIGKILL of a node"
	termLeader   = "SIGTERM of the leader"
	freezeLeader = "SIGSTOP of the leader"
	stepDown     = "stepdown"
	lockCut      = "way to the lock: connections reset"
	lockHang     = "way to the lock: hangs"
	dbCut        = "way to PostgreSQL: connections reset"
	dbHang       = "way to PostgreSQL: hangs"
	dbMute       = "way to PostgreSQL: replies hang"
	dbFreeze     = "SIGSTOP of PostgreSQL"
	dbLock       = "a table is locked"
	masterKill   = "SIGKILL of a master"
	masterFreeze = "SIGSTOP of a master"
	replicaKill  = "SIGKILL of a replica"
	followerCut  = "a master drops its replicas"
	clientCut    = "a master drops its clients"
	backlog      = "another size of the backlog"
)

func leases(n float64) time.Duration { return time.Duration(n * float64(lease)) }

// traits are those of the faults of every topology.
func traits() []nemesis.Trait {
	return []nemesis.Trait{
		{Kind: killLeader, Place: "node", Weight: 5},
		{Kind: killNode, Place: "node", Weight: 1},
		{Kind: termLeader, Place: "node", Weight: 2},
		{Kind: freezeLeader, Place: "freezer", Weight: 4, Least: leases(0.5), Longest: leases(3)},
		{Kind: stepDown, Place: "control", Weight: 2},
		{Kind: lockCut, Place: "lock", Weight: 1},
		{Kind: lockHang, Place: "lock", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: dbCut, Place: "db", Weight: 2},
		{Kind: dbHang, Place: "db", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: dbMute, Place: "db", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: dbFreeze, Place: "db", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: dbLock, Place: "table", Weight: 4, Least: leases(0.5), Longest: leases(3)},
		// Sentinels take half a second to find it down, and one to three for the rest; a Cluster two to five in all.
		{Kind: masterKill, Place: "store", Weight: 3, Least: leases(2), Longest: leases(4)},
		{Kind: masterFreeze, Place: "store", Weight: 3, Least: leases(0.1), Longest: leases(3)},
		{Kind: replicaKill, Place: "replica", Weight: 1, Least: leases(0.5), Longest: leases(2)},
		{Kind: followerCut, Place: "stream", Weight: 5},
		{Kind: clientCut, Place: "stream", Weight: 3},
		{Kind: backlog, Place: "backlog", Weight: 2},
	}
}

func pace() nemesis.Pace {
	return nemesis.Pace{Least: 300 * time.Millisecond, Most: 2000 * time.Millisecond, Quiet: lease + 2500*time.Millisecond, Each: each}
}

// begin carries a fault out.
func (l *lab) begin(f nemesis.Fault) (target string, end func()) {
	i := l.leader()
	if f.Kind == killNode {
		i = int(f.Draw % nodes)
	}
	u, i := l.keeper.Standing(i)
	nothing := func() {}
	switch way := l.ways[i]; f.Kind {
	case killLeader, killNode:
		u.Kill()
	case termLeader:
		u.Term()
	case freezeLeader:
		u.Freeze()
		return u.ID, u.Thaw
	case stepDown:
		l.background.Go(func() { l.Add("stepdown said: %s", u.StepDown(l.t.Context())) })
	case lockCut:
		way.redis.Cut()
	case lockHang:
		way.redis.Hang()
		return u.ID, way.redis.Unhang
	case dbCut:
		way.db.Cut()
	case dbHang:
		way.db.Hang()
		return u.ID, way.db.Unhang
	case dbMute:
		way.db.HangReplies()
		return u.ID, way.db.Unhang
	case dbFreeze:
		d := l.db.Server().Daemon()
		l.ground(d.Freeze())
		return "database", func() { l.ground(d.Thaw()) }
	case dbLock:
		table := l.jobs[f.Draw%uint64(len(l.jobs))].name
		return table, l.lock(table)
	default:
		return l.beginInStore(f)
	}
	return u.ID, nothing
}

// beginInStore carries out a fault of the Redis that has the data.
func (l *lab) beginInStore(f nemesis.Fault) (target string, end func()) {
	nothing := func() {}
	masters, err := l.store.masters()
	if err != nil {
		l.ground(err)
		return "", nothing
	}
	master := masters[f.Draw%uint64(len(masters))]
	switch f.Kind {
	case masterKill:
		settled := l.store.unsettle()
		back := l.kill(master)
		return master.Addr(), func() { back(); settled() }
	case masterFreeze:
		settled := l.store.unsettle()
		l.ground(master.Freeze())
		return master.Addr(), func() { l.ground(master.Thaw()); settled() }
	case replicaKill:
		for _, r := range l.store.servers() {
			if !slices.Contains(masters, r) && !l.down[r] {
				return r.Addr(), l.kill(r)
			}
		}
	case followerCut:
		l.ask(master, "CLIENT", "KILL", "TYPE", "replica")
	case clientCut:
		l.ask(master, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	case backlog:
		sizes := []string{"16kb", "256kb", "4mb", "64mb"}
		size := sizes[f.Draw%uint64(len(sizes))]
		for _, r := range l.store.servers() {
			l.ask(r, "CONFIG", "SET", "repl-backlog-size", size)
		}
		return size, nothing
	default:
		return l.store.begin(f, master)
	}
	return master.Addr(), nothing
}

// ask sends a command to a server that may be down.
func (l *lab) ask(r *testsupport.RedisDaemon, command string, args ...any) {
	if l.down[r] {
		return
	}
	c, err := redis.Dial("tcp", r.Addr(), redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience))
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := c.Do(command, args...); err != nil {
		l.Add("%s %v at %s: %v", command, args, r.Addr(), err)
	}
}

// kill kills a server until its end is called.
func (l *lab) kill(r *testsupport.RedisDaemon) (end func()) {
	l.ground(r.Kill())
	l.down[r] = true
	return func() {
		l.ground(r.Restart())
		delete(l.down, r)
	}
}

// lock holds a lock on a table, as a migration does, until its end is called.
func (l *lab) lock(table string) (end func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	held := make(chan struct{})
	go func() {
		defer close(held)
		// It fails where the database is frozen, or the end comes.
		_, err := l.db.Query(ctx, "DO $$ BEGIN LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(60); END $$")
		l.Add("the lock on %s ended: %v", table, err)
	}()
	return func() { cancel(); <-held }
}

// ground fails the test for what is none of the nodes' doing.
func (l *lab) ground(err error) {
	if err != nil {
		l.Wrong("this test's own ground is gone: %v", err)
	}
}
