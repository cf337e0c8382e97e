package daemon

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/testsupport"
)

// quorumOf returns a node "a" whose lock is on three separate masters.
func quorumOf(t *testing.T) (c config.Config, data *testsupport.Redis, masters []*testsupport.Redis) {
	t.Helper()
	data = testsupport.StartRedis(t)
	c = configFor(data.URL())
	for range 3 {
		m := testsupport.StartRedis(t)
		masters = append(masters, m)
		c.Redis.Quorum = append(c.Redis.Quorum, m.URL())
	}
	return c, data, masters
}

func exists(t *testing.T, r *testsupport.Redis, key string) bool {
	t.Helper()
	there, err := redis.Bool(r.Conn().Do("EXISTS", key))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// mastersHeld returns the number of masters on which the lock is held.
func mastersHeld(t *testing.T, masters []*testsupport.Redis) int {
	t.Helper()
	n := 0
	for _, m := range masters {
		if exists(t, m, "baton") {
			n++
		}
	}
	return n
}

func TestAnElectionOnAQuorumLeavesTheDataAlone(t *testing.T) {
	t.Parallel()
	c, data, masters := quorumOf(t)
	a := start(t, c, nil)
	a.leads()
	await(t, "all masters to grant the lock", func() bool { return mastersHeld(t, masters) == 3 })
	if exists(t, data, "baton") || exists(t, data, "{baton}:term") || exists(t, data, "{baton}:nodes") {
		t.Error("the election has left something where the data is")
	}
	s, err := overServers(t, c).to.Snapshot(t.Context())
	if err != nil || s.Leader == nil || s.Leader.NodeID != "a" || s.Leader.Epoch == 0 || s.Leader.LeaseLeft <= 0 || len(s.Nodes) != 1 {
		t.Errorf("%+v, leader %+v, %v", s, s.Leader, err)
	}
	a.endsWell()
	// If a busy master has not received the release in time, the lock ends there with its lease. The node's entry on this master is removed
	// when the next node reads the list.
	await(t, "no master to be left with a lock", func() bool { return mastersHeld(t, masters) == 0 })
	listed := 0
	for _, m := range masters {
		if exists(t, m, "{baton}:nodes") {
			listed++
		}
	}
	if listed > len(masters)/2 {
		t.Errorf("%d of %d masters still list the node", listed, len(masters))
	}
}

// If one of three masters is dead, or hangs, commands can still read and control the election.
func TestCommandsNeedAMajorityOfTheMastersOnly(t *testing.T) {
	t.Parallel()
	c, _, masters := quorumOf(t)
	a := start(t, c, nil)
	a.leads()
	await(t, "all masters to grant the lock", func() bool { return mastersHeld(t, masters) == 3 })
	b := c
	b.Node.ID = "b"
	start(t, b, nil)
	r := overServers(t, c)
	leader := func() string {
		s, err := r.to.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Leader == nil {
			return ""
		}
		return s.Leader.NodeID
	}
	await(t, "both nodes to be listed", func() bool { s, err := r.to.Snapshot(t.Context()); return err == nil && len(s.Nodes) == 2 })

	masters[1].Freeze()
	if id := leader(); id != "a" {
		t.Errorf("with a master hung %q leads", id)
	}
	h, err := r.stepDown(t.Context(), "", "test", soon)
	if err != nil || h.From != "a" || h.NodeID != "b" {
		t.Errorf("step down with a master hung: %+v, %v", h, err)
	}
	masters[1].Thaw()
	await(t, "the new leader to take the master that hung", func() bool {
		owner, err := redis.String(masters[1].Conn().Do("GET", "baton"))
		other, _ := redis.String(masters[0].Conn().Do("GET", "baton"))
		return err == nil && owner == other
	})
	masters[2].Kill()
	p, err := r.pause(t.Context(), "by the test", soon)
	if err != nil || p.From != "b" {
		t.Errorf("pause with a master dead: %+v, %v", p, err)
	}
	time.Sleep(c.Election.TTL)
	if id := leader(); id != "" {
		t.Errorf("%s leads in a pause", id)
	}
	masters[2].Restart()
	if done, err := r.resume(t.Context(), "by the test", soon); err != nil || done.Was == nil || done.Was.Reason != "by the test" || done.NodeID == "" {
		t.Errorf("resume: %+v, %v", done, err)
	}
	masters[0].Kill()
	masters[1].Kill()
	if _, err := r.to.Snapshot(t.Context()); err == nil {
		t.Error("one of three masters is taken for the election")
	}
}

func TestTheLockOfACrashedLeaderIsReleasedOnAllMasters(t *testing.T) {
	t.Parallel()
	c, _, masters := quorumOf(t)
	dir := t.TempDir()
	a := start(t, c, map[string]string{"RUNTIME_DIRECTORY": dir})
	a.leads()
	var l crash.Lease
	await(t, "the lease file and three masters", func() (ok bool) {
		l, ok, _ = crash.ReadLease(filepath.Join(dir, "lease.json"))
		return ok && mastersHeld(t, masters) == 3
	})
	for _, m := range masters { // as if the leader were dead and renewed no lease
		if owner, err := redis.String(m.Conn().Do("GET", "baton")); err != nil || owner != l.Owner {
			t.Errorf("a master has owner %q, %v; the file says %q", owner, err, l.Owner)
		}
	}
	masters[0].Kill()
	release := func(owner string) (got crash.Released) {
		await(t, "an answer of both masters", func() bool { // on a busy machine one may take longer than Release waits
			one, err := crash.Release(t.Context(), c, owner, "test")
			got.Was = got.Was || one.Was // also without an answer of the other
			got.Holder = one.Holder
			return err == nil
		})
		return got
	}
	if got := release("somebody-else"); got.Was || got.Holder != "a" {
		t.Errorf("released for another owner: %+v", got)
	}
	if got := release(l.Owner); !got.Was {
		t.Errorf("released: %+v", got)
	}
}
