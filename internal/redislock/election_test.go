package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

func TestLedgerConforms(t *testing.T) {
	r := testsupport.StartRedis(t)
	jobtest.Conformance(t, func(t *testing.T) (job.Ledger, func(owner string)) {
		key := "election:" + t.Name()
		lead := func(owner string) {
			r.Client(t).Do("SET", key, owner)
		}
		return redisledger.NewLedger(open(t, r), redisledger.LedgerOptions{LockKey: key}), lead
	})
}

// With a quorum the lock is in other stores, and the leader is the owner of the highest epoch that has made a claim.
func TestLedgerApartFromTheLockConforms(t *testing.T) {
	r := testsupport.StartRedis(t)
	jobtest.Conformance(t, func(t *testing.T) (job.Ledger, func(owner string)) {
		key := "election:" + t.Name()
		lead := func(owner string) {
			r.Client(t).Do("HSET", "{"+key+"}:fence", "owner", owner, "epoch", owner[0])
		}
		lead("~") // an owner that makes no claim
		return redisledger.NewLedger(open(t, r), redisledger.LedgerOptions{LockKey: key, ByEpoch: true}), lead
	})
}

func TestHintsArriveAndComeBackAfterRedisDoes(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	lock := newLock(t, s, "baton", "a", time.Minute)
	hints := make(chan elector.Hint, 8)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: hints})
	}()

	await := func(want elector.Hint) {
		t.Helper()
		for deadline := time.After(time.Minute); ; {
			select {
			case h := <-hints:
				if h == want {
					return
				}
			case <-deadline:
				t.Fatalf("hint %v has not come", want)
			}
		}
	}
	round := func(owner string) {
		t.Helper()
		await(elector.HintSubscribed)
		again(t, func() error {
			a, err := lock.Acquire(ctx, elector.Candidate{Owner: owner})
			if err == nil && a.Outcome != elector.Won {
				t.Fatalf("acquire: %+v", a)
			}
			return err
		})
		again(t, func() error {
			_, _, err := redislock.NewElection(s, "baton", script.String).StepDown(ctx, "", "test")
			return err
		})
		await(elector.HintControl)
		if err := lock.Release(ctx, owner, elector.Handover{Event: "stepped_down"}); err != nil {
			t.Fatal(err)
		}
		await(elector.HintReleased)
	}
	round("o1")
	r.Kill()
	await(elector.HintInterrupted)
	r.Restart()
	round("o2")
	cancel()
	<-done
}

func TestTheStateShowsTheElection(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	e := redislock.NewElection(s, "baton", script.String)
	ctx := t.Context()
	if p, err := e.State(ctx, 10); err != nil || p.Owner != "" || p.Leader != "" || len(p.Nodes) != 0 {
		t.Fatalf("an election that never was: %+v, %v", p, err)
	}
	if _, _, err := e.StepDown(ctx, "", ""); !errors.Is(err, redislock.ErrNoLeader) {
		t.Errorf("step down without a leader: %v, want ErrNoLeader", err)
	}
	a, b := newLock(t, s, "baton", "a", 5*time.Second), newLock(t, s, "baton", "b", 5*time.Second)
	won, err := a.Acquire(ctx, elector.Candidate{Owner: "o1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(ctx, elector.Candidate{Owner: "o2"}); err != nil {
		t.Fatal(err)
	}
	p, err := e.State(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	if p.Owner != "o1" || p.Leader != "a" || p.Epoch != won.Epoch || p.TTL != 5*time.Second || p.Left <= 0 || p.Left > p.TTL {
		t.Errorf("picture %+v", p)
	}
	for _, at := range []time.Time{p.Now, p.Since, p.Events[0].At, p.Nodes[0].Seen()} { // JSON contains these times with their zone
		if at.Location() != time.UTC {
			t.Errorf("%v is not in UTC", at)
		}
	}
	if len(p.Nodes) != 2 || p.Nodes[0].State != "leading" || p.Nodes[1].State != "standby" || p.Nodes[0].Version != "test" {
		t.Errorf("nodes %+v", p.Nodes)
	}
	if age := p.Now.Sub(p.Nodes[1].Seen()); age < 0 || age > 5*time.Second {
		t.Errorf("node b was seen %v ago", age)
	}
	if err := a.Release(ctx, "o1", elector.Handover{Event: "stepped_down", Reason: "drill"}); err != nil {
		t.Fatal(err)
	}
	p, err = e.State(ctx, 1)
	if err != nil || p.Owner != "" || len(p.Events) != 1 || p.Events[0].Event != "stepped_down" || p.Events[0].Reason != "drill" {
		t.Errorf("after the release: %+v, %v", p, err)
	}
	if err := e.Forget(ctx, p.Nodes, p.Now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if p, err = e.State(ctx, 0); err != nil || len(p.Nodes) != 0 {
		t.Errorf("nodes after forgetting them: %+v, %v", p.Nodes, err)
	}
}

func TestALeaseThatRanOutIsInTheHistory(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	s := open(t, r)
	a, b := newLock(t, s, "baton", "a", time.Minute), newLock(t, s, "baton", "b", time.Minute)
	const held = "1700000000123" // the end of the previous term's lease, which is long ago
	runOut := func() {
		t.Helper()
		r.Client(t).Do("HSET", "{baton}:term", "held_until", held)
		r.Client(t).Do("PEXPIRE", "baton", 1)
		testsupport.Await(t, "the lease runs out", func() bool { return r.Client(t).Num("EXISTS", "baton") == 0 })
	}
	if _, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err != nil {
		t.Fatal(err)
	}
	runOut()
	if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Release(t.Context(), "o2", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o3"}); err != nil {
		t.Fatal(err)
	}
	runOut()
	if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o4"}); err != nil {
		t.Fatal(err)
	}
	p, err := redislock.NewElection(s, "baton", script.String).State(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, e := range p.Events {
		words = append(words, e.NodeID+" "+e.Event)
	}
	for _, e := range p.Events {
		if over := e.Over.UnixMilli(); e.Event == "expired" && over != 1700000000123 || e.Event != "expired" && !e.Over.IsZero() {
			t.Errorf("%s of %s: its lease ended at %v", e.Event, e.NodeID, e.Over)
		}
	}
	if left := time.Until(p.Held); left < 30*time.Second || left > 2*time.Minute {
		t.Errorf("the lease of the term that goes on ends in %v", left)
	}
	if got := strings.Join(words, ", "); got != "b won, a expired, a won, b released, b won, a expired, a won" {
		t.Errorf("history, newest first: %s", got)
	}
}

func TestALockThatAForeignClientHoldsForEverIsJustHeld(t *testing.T) {
	r := testsupport.StartRedis(t)
	lock := newLock(t, open(t, r), "baton", "a", time.Second)
	// An earlier term of baton does not show which client holds the lock now.
	if _, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o0"}); err != nil {
		t.Fatal(err)
	}
	r.Client(t).Do("SET", "baton", "somebody")
	for _, polling := range []bool{false, true} {
		a, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1", Polling: polling})
		if err != nil || a.Outcome != elector.Held || a.Holder != "" || a.Left < time.Minute {
			t.Errorf("polling %v: %+v, %v; want it held by nobody we know, without an end", polling, a, err)
		}
	}
}

// TestARefusalSaysWhatToDo brings real servers into the states that refuse a lock.
func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		start func(t *testing.T) redisconn.Options
		want  string
	}{
		{"the lock key has another type", func(t *testing.T) redisconn.Options {
			r := testsupport.StartRedis(t)
			r.Client(t).Do("SADD", "baton", "x")
			return redisconn.Options{URL: r.URL()}
		}, `key "baton" is a set and should be a string: ` +
			`a key of the election has the wrong type: is it used by another program? Choose another election.lock_key`},
		{"no password", func(t *testing.T) redisconn.Options {
			return redisconn.Options{URL: address(testsupport.StartRedis(t, testsupport.RedisPassword("planted-secret")))}
		}, "set redis.password_file"},
		{"a wrong password", func(t *testing.T) redisconn.Options {
			r := testsupport.StartRedis(t, testsupport.RedisPassword("planted-secret"))
			return redisconn.Options{URL: address(r), Password: func() (string, error) { return "another-planted-secret", nil }}
		}, "check redis.username and redis.password_file"},
		{"a replica", func(t *testing.T) redisconn.Options {
			master := testsupport.StartRedis(t)
			host, port, err := net.SplitHostPort(master.Addr())
			if err != nil {
				t.Fatal(err)
			}
			return redisconn.Options{URL: testsupport.StartRedis(t, testsupport.RedisArgs("--replicaof", host, port)).URL()}
		}, "is a replica"},
		{"too few replicas", func(t *testing.T) redisconn.Options {
			return redisconn.Options{URL: testsupport.StartRedis(t, testsupport.RedisArgs("--min-replicas-to-write", "1")).URL()}
		}, "min-replicas-to-write"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Open(t, c.start(t))
			lock := newLock(t, s, "baton", "a", time.Second)
			_, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
			if !errors.Is(err, elector.ErrRefused) {
				t.Fatalf("acquire: %v, want a refusal", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted-secret") {
				t.Errorf("the error says %q; want it to say %q and no secret", err, c.want)
			}
		})
	}
}

// The flushes of a leader free memory if the memory is full. So a node must be able to lead, also after Redis has lost all data, and with
// every format of the lock.
func TestALeaderIsFoundAndStaysWhileTheMemoryIsFull(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisArgs("--maxmemory", "1b"))
	for _, design := range []string{"scripts", "redisson"} {
		s := redistest.Open(t, redisconn.Options{URL: r.URL()})
		o := designs[design]
		o.Key, o.NodeID, o.TTL = design, "a", time.Minute
		lock := designedLock(t, s, o)
		got, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
		if err != nil || got.Outcome != elector.Won {
			t.Fatalf("%s: acquire: %+v, %v", design, got, err)
		}
		if _, err := lock.Renew(t.Context(), "o1", got.Epoch); err != nil {
			t.Errorf("%s: renew: %v", design, err)
		}
		if epoch, err := lock.Raise(t.Context(), "o1", got.Epoch+1000); err != nil || epoch != got.Epoch+1001 {
			t.Errorf("%s: raise: %d, %v", design, epoch, err)
		}
	}
}

func TestAServerThatIsNotRedisIsNamedAsSuch(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	s := redistest.Open(t, redisconn.Options{URL: "redis://" + l.Addr().String() + "/0"})
	_, err = newLock(t, s, "baton", "a", time.Second).Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	if err == nil || errors.Is(err, elector.ErrRefused) || !strings.Contains(err.Error(), "not Redis' protocol") {
		t.Errorf("acquire: %v", err)
	}
}

// again tries twice: the first try may get a connection to a Redis that was killed.
func again(t *testing.T, try func() error) {
	t.Helper()
	if err := try(); err == nil {
		return
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
}

// address returns the server's URL without the password.
func address(r *testsupport.Redis) string { return "redis://" + r.Addr() + "/0" }

func TestASlotFarAheadIsNotClaimed(t *testing.T) {
	r := testsupport.StartRedis(t)
	r.Client(t).Do("SET", "baton", "o1")
	ledger := redisledger.NewLedger(open(t, r), redisledger.LedgerOptions{LockKey: "baton"})
	claim := func(ahead time.Duration) error {
		return ledger.Claim(t.Context(), job.Run{ID: "r", Job: "report", Slot: time.Now().Add(ahead), Attempt: 1,
			Term: job.Term{Owner: "o1"}})
	}
	if err := claim(365 * 24 * time.Hour); err == nil || errors.Is(err, job.ErrSlotTaken) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("a slot of next year: %v", err)
	}
	if err := claim(10 * time.Second); err != nil {
		t.Errorf("a slot that a clock a little ahead has come to: %v", err)
	}
}

// The list must be read in limited pages, because HGETALL of a million forged fields would block Redis for seconds.
func TestTheNodesAreReadInPagesAndNotWithoutBound(t *testing.T) {
	r := testsupport.StartRedis(t)
	client, e := r.Client(t), redislock.NewElection(open(t, r), "baton", script.String)
	add := func(from, to int) {
		for ; from < to; from += 500 {
			args := []any{"{baton}:nodes"}
			for n := from; n < from+500; n++ {
				args = append(args, fmt.Sprintf("n%d", n),
					`{"state":"standby","version":"of more than sixty-four bytes, as each node has"}`)
			}
			client.Do("HSET", args...)
		}
	}
	cut := false
	nodes := func() int {
		p, err := e.State(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		cut = p.Cut
		return len(p.Nodes)
	}
	add(0, 3000)
	if n := nodes(); n != 3000 || cut {
		t.Errorf("%d nodes, cut: %t; want all 3000", n, cut)
	}
	add(3000, 50_000)
	calls := client.CallsOf(func() {
		if n := nodes(); n < 5_000 || n > 15_000 || !cut {
			t.Errorf("%d of 50,000 nodes were read, cut: %t", n, cut)
		}
	})
	if calls["hscan"] != 10 {
		t.Errorf("not in 10 pages: %v", calls)
	}
}
