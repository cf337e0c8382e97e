package baton_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/pkg/baton"
	"baton/pkg/baton/lua"
)

// lockOn returns a lock whose lease does not end, and whose attempts do not fail, however busy the machine is.
func lockOn(r *testsupport.Redis, node string) baton.Lock {
	return baton.Lock{Key: "lock", Redis: baton.Redis{URL: r.URL()}, TTL: time.Hour, Timeout: 20 * time.Second, Node: node}
}

// endingOn returns a lock for tests that wait for the end of a lease. A busy machine can renew the lease in time.
func endingOn(r *testsupport.Redis, node string) baton.Lock {
	return baton.Lock{Key: "lock", Redis: baton.Redis{URL: r.URL()}, TTL: 6 * time.Second, Node: node}
}

func TestLeaderIsFollowedAtOnceWhenItsContextEnds(t *testing.T) {
	r := testsupport.StartRedis(t)
	p := &post{t: t}
	stopFirst := start(t, lockOn(r, "a"), p.lead)
	testsupport.Await(t, "a leads", func() bool { return p.terms.Load() == 1 })
	stopSecond := start(t, lockOn(r, "b"), p.lead)
	testsupport.Await(t, "b is known", func() bool { return r.Client(t).Num("HLEN", "{lock}:nodes") == 2 })
	stopFirst()
	testsupport.Await(t, "b leads", func() bool { return p.terms.Load() == 2 })
	stopSecond()
	if exists, err := redis.Bool(r.Conn().Do("EXISTS", "lock")); exists || err != nil {
		t.Errorf("the lock is there after the end: %v, %v", exists, err)
	}
	if n := r.Client(t).Num("HLEN", "{lock}:nodes"); n != 0 {
		t.Errorf("%d nodes are listed after their end", n)
	}
}

func TestWhatTheWorkReturns(t *testing.T) {
	r := testsupport.StartRedis(t)
	failure := errors.New("the disk is full")
	for want, returned := range map[error]error{nil: fmt.Errorf("all of it: %w", baton.ErrDone), failure: failure} {
		calls := 0
		err := baton.Lead(t.Context(), lockOn(r, "a"), func(context.Context, baton.Term) error {
			calls++
			return returned
		})
		if !errors.Is(err, want) || calls != 1 {
			t.Errorf("the work returns %v, Lead %v after %d calls, want %v", returned, err, calls, want)
		}
		if exists, err := redis.Bool(r.Conn().Do("EXISTS", "lock")); exists || err != nil {
			t.Errorf("the lock is not given back: %v, %v", exists, err)
		}
	}
	// If the work returns nil, the next process leads, and then the first process leads again.
	p := &post{t: t}
	for _, node := range []string{"a", "b"} {
		start(t, lockOn(r, node), func(_ context.Context, term baton.Term) error {
			p.enter(term)
			p.inside.Add(-1)
			return nil
		})
	}
	testsupport.Await(t, "six terms", func() bool { return p.terms.Load() >= 6 })
}

// TestContextEndsBeforeTheLeaseWhereRedisIsGone checks that the context ends before the lease ends, and that there is a new leader when
// Redis answers again.
func TestContextEndsBeforeTheLeaseWhereRedisIsGone(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	proxy := r.Proxy()
	l := endingOn(r, "a")
	l.Redis.URL = r.URLThrough(proxy)
	p := &post{t: t}
	ended := make(chan error, 10)
	start(t, l, func(ctx context.Context, term baton.Term) error {
		p.enter(term)
		defer p.inside.Add(-1)
		<-ctx.Done()
		if ctx.Err() != nil && term.Remaining() <= 0 {
			t.Errorf("nothing is left of the lease when the context ends: %v", term.Remaining())
		}
		ended <- context.Cause(ctx)
		return nil
	})
	for i := range 2 {
		testsupport.Await(t, "it leads", func() bool { return p.inside.Load() == 1 })
		hide, show := proxy.Block, proxy.Unblock
		if i == 1 {
			hide, show = proxy.Hang, proxy.Unhang
		}
		hide()
		if cause := testsupport.Receive(t, "the end of the work without Redis", ended); !errors.Is(cause, baton.ErrExpired) {
			t.Errorf("the context ended because of %v", cause)
		}
		if left, err := redis.Int(r.Conn().Do("PTTL", "lock")); err != nil || left <= 0 {
			t.Logf("Redis had let the lock go by the time it was asked: %d, %v", left, err)
		}
		show()
	}
	testsupport.Await(t, "it leads again", func() bool { return p.terms.Load() >= 3 })
}

// TestNeverTwoLeaders checks five nodes whose connections fail in different ways. There are never two leaders at the same time, and the
// epochs rise.
func TestNeverTwoLeaders(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := &post{t: t}
	var proxies []*testsupport.Proxy
	for i := range 5 {
		proxies = append(proxies, r.Proxy())
		l := endingOn(r, fmt.Sprint("node", i))
		l.Redis.URL, l.TTL = r.URLThrough(proxies[i]), 3*time.Second
		start(t, l, p.lead)
	}
	for round := range int32(8) {
		testsupport.Await(t, "somebody leads", func() bool { return p.terms.Load() > round && p.inside.Load() == 1 })
		leader, err := redis.String(r.Conn().Do("HGET", "{lock}:term", "node_id"))
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscanf(leader, "node%d", &n); err != nil {
			t.Fatalf("%q leads: %v", leader, err)
		}
		before := p.terms.Load()
		switch round % 4 {
		case 0:
			proxies[n].Block()
		case 1:
			proxies[n].Hang()
		case 2:
			proxies[n].HangReplies()
		case 3:
			batonCommand(t, "stepdown", "--redis", r.URL(), "--lock-key", "lock", "--reason", "test")
		}
		testsupport.Await(t, "another term", func() bool { return p.terms.Load() > before })
		proxies[n].Unblock()
		proxies[n].Unhang()
	}
}

func TestTermIsCheckedAndRaised(t *testing.T) {
	r := testsupport.StartRedis(t)
	err := baton.Lead(t.Context(), lockOn(r, "a"), func(ctx context.Context, term baton.Term) error {
		if owner := r.Client(t).Str("GET", "lock"); owner != term.Owner() || term.Node() != "a" {
			t.Errorf("owner %s in Redis, %s of the term of %s", owner, term.Owner(), term.Node())
		}
		if !term.Trusted() || term.Remaining() <= 0 {
			t.Errorf("trusted %v, %v left", term.Trusted(), term.Remaining())
		}
		if err := term.Confirm(ctx); err != nil {
			t.Errorf("its own lock is not confirmed: %v", err)
		}
		before := term.Epoch()
		if raised, err := term.Raise(ctx, before+5); err != nil || raised != before+6 || term.Epoch() != raised {
			t.Errorf("raised to %d, %v; it is %d", raised, err, term.Epoch())
		}
		if err := term.Confirm(ctx); err != nil {
			t.Errorf("a raised one is not confirmed: %v", err)
		}
		if _, err := r.Conn().Do("SET", "lock", "another", "KEEPTTL"); err != nil {
			t.Error(err)
		}
		if err := term.Confirm(context.WithoutCancel(ctx)); !errors.Is(err, baton.ErrLost) {
			t.Errorf("another's lock is confirmed: %v", err)
		}
		if epoch, err := term.Raise(context.WithoutCancel(ctx), term.Epoch()); !errors.Is(err, baton.ErrLost) || epoch != 0 {
			t.Errorf("the epoch of another's lock is raised to %d: %v", epoch, err)
		}
		return baton.ErrDone
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNothingIsConfirmedWithoutAnAnswer checks that Confirm fails if Redis does not answer. The error must not say that the lock is lost.
func TestNothingIsConfirmedWithoutAnAnswer(t *testing.T) {
	r := testsupport.StartRedis(t)
	proxy := r.Proxy()
	l := lockOn(r, "a")
	l.Redis.URL, l.Timeout = r.URLThrough(proxy), time.Second
	err := baton.Lead(t.Context(), l, func(ctx context.Context, term baton.Term) error {
		proxy.Block()
		defer proxy.Unblock()
		if err := term.Confirm(ctx); err == nil || errors.Is(err, baton.ErrLost) || errors.Is(err, baton.ErrExpired) {
			t.Errorf("without Redis: %v", err)
		}
		if epoch, err := term.Raise(ctx, term.Epoch()); err == nil || errors.Is(err, baton.ErrLost) || epoch != 0 {
			t.Errorf("raised without Redis to %d: %v", epoch, err)
		}
		return baton.ErrDone
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNothingIsConfirmedOnceTrustIsOver checks that a term which is no longer trusted is not confirmed, even if Redis still stores its
// owner in the lock.
func TestNothingIsConfirmedOnceTrustIsOver(t *testing.T) {
	r := testsupport.StartRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var first *baton.Term
	err := baton.Lead(ctx, endingOn(r, "a"), func(_ context.Context, term baton.Term) error {
		if first == nil {
			first = &term
			return nil // the next term begins
		}
		defer cancel()
		testsupport.Await(t, "trust in the first term is over", func() bool { return !first.Trusted() })
		if _, err := r.Conn().Do("SET", "lock", first.Owner(), "KEEPTTL"); err != nil {
			t.Error(err)
		}
		if err := first.Confirm(t.Context()); !errors.Is(err, baton.ErrExpired) {
			t.Errorf("a term without trust is confirmed: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAnErrorAfterTheEndOfATermDoesNotEndLead checks an error that the work returns after its context has ended. It is passed to OnChange
// because it may result from that end, and Lead campaigns again.
func TestAnErrorAfterTheEndOfATermDoesNotEndLead(t *testing.T) {
	r := testsupport.StartRedis(t)
	late := errors.New("the work was cut off")
	var told []error
	l := endingOn(r, "a")
	l.OnChange = func(e baton.Event) {
		if e.Kind == baton.EventEnded {
			told = append(told, e.Err)
		}
	}
	terms := 0
	err := baton.Lead(t.Context(), l, func(ctx context.Context, _ baton.Term) error {
		if terms++; terms > 1 {
			return baton.ErrDone
		}
		if _, err := r.Conn().Do("DEL", "lock"); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return late
	})
	if err != nil || terms != 2 || len(told) == 0 || !errors.Is(told[0], late) {
		t.Errorf("Lead returned %v after %d terms; their ends were told with %v", err, terms, told)
	}
}

func TestChangesAreToldAndLogged(t *testing.T) {
	r := testsupport.StartRedis(t)
	var mu sync.Mutex
	var told []string
	var logged bytes.Buffer
	l := lockOn(r, "b")
	l.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	l.OnChange = func(e baton.Event) { // there is one call at a time, so no mutex is needed
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(e.Kind, " ", e.Node, " ", e.Epoch > 0, " ", e.Reason, " ", e.Err, " ", e.Released))
	}
	p := &post{t: t}
	stopFirst := start(t, lockOn(r, "a"), p.lead)
	testsupport.Await(t, "a leads", func() bool { return p.terms.Load() == 1 })
	stop := start(t, l, p.lead)
	saw := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(told) >= n }
	}
	testsupport.Await(t, "b knows", saw(1))
	stopFirst()
	testsupport.Await(t, "b leads", saw(2))
	stop()
	want := []string{
		"following a true  <nil> false", "leading b true  <nil> false",
		"stopping b true shutting down <nil> false", "ended  true shutting down <nil> true",
	}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", told, want)
	}
	for _, line := range []string{"election: following\" lock=lock node=b leader=a epoch=", "election: leading\" lock=lock node=b epoch="} {
		if !strings.Contains(logged.String(), line) {
			t.Errorf("no %q in %s", line, logged.String())
		}
	}
}

func TestPriorityObserverAndOrders(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := &post{t: t}
	watching := lockOn(r, "watcher")
	seen := make(chan string, 100)
	watching.Observer, watching.OnChange = true, func(e baton.Event) { seen <- string(e.Kind) + " " + e.Node }
	start(t, watching, func(context.Context, baton.Term) error { t.Error("an observer leads"); return nil })
	low, high := lockOn(r, "low"), lockOn(r, "high")
	high.Priority = 10
	start(t, low, p.lead)
	testsupport.Await(t, "low leads", func() bool { return p.terms.Load() == 1 })
	start(t, high, p.lead)
	testsupport.Await(t, "high is known", func() bool { return r.Client(t).Num("HLEN", "{lock}:nodes") == 3 })
	// This is the command of `baton stepdown` in the same binary.
	out := batonCommand(t, "stepdown", "--redis", r.URL(), "--lock-key", "lock", "--reason", "test")
	testsupport.Await(t, "high leads", func() bool {
		return p.terms.Load() == 2 && r.Client(t).Str("HGET", "{lock}:term", "node_id") == "high"
	})
	for deadline := time.After(time.Minute); ; {
		select {
		case s := <-seen:
			if s == "following high" {
				return
			}
		case <-deadline:
			t.Fatalf("the observer does not know who leads; stepdown said %s", out)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	good := baton.Redis{URL: "redis://127.0.0.1:1"}
	work := func(context.Context, baton.Term) error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that a valid lock ends without an error and without a wait
	for want, l := range map[string]baton.Lock{
		"Key is required":                          {Redis: good},
		"give it a {tag}":                          {Key: "a}b", Redis: good},
		"Node \"a b\": use letters":                {Key: "k", Redis: good, Node: "a b"},
		"Priority 1001: must be from 0 to 1000":    {Key: "k", Redis: good, Priority: 1001},
		"TTL 10ms: a lease needs at least 1s":      {Key: "k", Redis: good, TTL: 10 * time.Millisecond},
		"raise ttl or lower":                       {Key: "k", Redis: good, Heartbeat: 9 * time.Second},
		"WaitReplicas -1":                          {Key: "k", Redis: good, WaitReplicas: -1},
		"Redisson needs scripts":                   {Key: "k", Redis: good, Redisson: true, Interpreter: lua.Interpreter},
		"Redis and Quorum are both set":            {Key: "k", Redis: good, Quorum: []baton.Redis{good, good, good}},
		"Quorum has 2 servers":                     {Key: "k", Quorum: []baton.Redis{good, good}},
		"invalid lock: Redis: ":                    {Key: "k", Redis: baton.Redis{URL: "http://user:hunter2-hunter2@host"}},
		"Redis: redis: set exactly one of":         {Key: "k"},
		"set exactly one of a url, sentinels or a": {Key: "k", Redis: baton.Redis{URL: good.URL, Cluster: []string{"a:1"}}},
	} {
		err := baton.Lead(ctx, l, work)
		if !errors.Is(err, baton.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := baton.Lead(ctx, baton.Lock{Key: "k", Redis: good}, work); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if err := baton.Lead(ctx, baton.Lock{Key: "k", Quorum: []baton.Redis{good, good, good}}, work); err != nil {
		t.Errorf("a quorum of three: %v", err)
	}
	if err := baton.Lead(ctx, baton.Lock{Key: "k", Redis: good}, nil); !errors.Is(err, baton.ErrInvalid) {
		t.Errorf("without a function: %v", err)
	}
}

// TestPasswordInTheURL checks that a password in the URL is used but never printed.
func TestPasswordInTheURL(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisPassword("treasure-chest"))
	for password, want := range map[string]baton.EventKind{"treasure-chest": baton.EventLeading, "guess": baton.EventUnavailable} {
		l := lockOn(r, "a")
		l.Redis.URL = strings.Replace(r.URL(), "redis://", "redis://default:"+password+"@", 1)
		ctx, cancel := context.WithCancel(t.Context())
		var first baton.Event
		l.OnChange = func(e baton.Event) {
			if first.Kind == "" {
				first = e
			}
			cancel()
		}
		if err := baton.Lead(ctx, l, func(ctx context.Context, _ baton.Term) error { <-ctx.Done(); return nil }); err != nil {
			t.Error(err)
		}
		if first.Kind != want || strings.Contains(fmt.Sprint(first), password) {
			t.Errorf("%+v, want %s", first, want)
		}
	}
}

func TestEveryDeploymentHasTheLock(t *testing.T) {
	t.Parallel()
	cluster, sentinel := testsupport.StartCluster(t), testsupport.StartSentinel(t)
	var quorum []baton.Redis
	for range 3 {
		quorum = append(quorum, baton.Redis{URL: testsupport.StartRedis(t).URL()})
	}
	one := testsupport.StartRedis(t)
	for name, l := range map[string]baton.Lock{
		"cluster":         {Redis: baton.Redis{Cluster: cluster.Addresses()}},
		"sentinel":        {Redis: baton.Redis{Sentinel: &baton.Sentinel{Master: sentinel.Name(), Addresses: sentinel.Addresses()}}},
		"quorum":          {Quorum: quorum},
		"redisson":        {Redis: baton.Redis{URL: one.URL()}, Key: "java", Redisson: true},
		"without scripts": {Redis: baton.Redis{URL: one.URL()}, Key: "plain", Interpreter: lua.Interpreter},
	} {
		t.Run(name, func(t *testing.T) {
			if l.Key == "" {
				l.Key = "lock"
			}
			l.TTL = time.Hour // so that the second Lead gets the lock only by a release
			p := &post{t: t}
			for range 2 {
				err := baton.Lead(t.Context(), l, func(ctx context.Context, term baton.Term) error {
					p.enter(term)
					p.inside.Add(-1)
					if err := term.Confirm(ctx); err != nil {
						t.Error(err)
					}
					return baton.ErrDone
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
