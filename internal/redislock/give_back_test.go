package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// belated forwards connections to a server. From the first bytes that contain pattern on, it holds back the bytes of that connection
// until the test lets them pass. The bytes still arrive if the client has closed the connection in the meantime, as in a network.
type belated struct {
	ln      net.Listener
	target  string
	pattern []byte
	let     chan struct{}
	arrived chan struct{} // receives a value when the server has executed the late commands
	wg      sync.WaitGroup
}

func startBelated(t *testing.T, target, pattern string) *belated {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &belated{ln: ln, target: target, pattern: []byte(pattern), let: make(chan struct{}),
		arrived: make(chan struct{}, 100)}
	b.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.wg.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		select {
		case <-b.let:
		default:
			close(b.let)
		}
		b.wg.Wait()
	})
	return b
}

func (b *belated) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp4", b.target)
	if err != nil {
		return
	}
	defer server.Close()
	answered := make(chan struct{})
	b.wg.Go(func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_, _ = io.Copy(io.Discard, server) // the client may have hung up
		_ = client.Close()
	})
	buf, late := make([]byte, 64<<10), false
	for {
		n, err := client.Read(buf)
		if n > 0 {
			if late = late || bytes.Contains(buf[:n], b.pattern); late {
				<-b.let
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if late { // the server closes the connection when it has executed all commands before the end
				_ = server.(*net.TCPConn).CloseWrite()
				<-answered
				b.arrived <- struct{}{}
			}
			return
		}
	}
}

// A lock that too few replicas had was given back, but it is unknown whether the release has arrived. It may arrive after the same owner
// has won.
func TestALateGiveBackTakesNoTermAway(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	late := startBelated(t, strings.TrimPrefix(strings.TrimSuffix(master.URL(), "/0"), "redis://"), "wait_replicas")
	far := redistest.Open(t, redisconn.Options{URL: "redis://" + late.ln.Addr().String()})
	const ttl = 15 * time.Second
	timing := heartbeat.Timing{TTL: ttl, Interval: ttl / 5, Timeout: ttl / 5, Margin: heartbeat.DefaultMargin(ttl), Drain: ttl / 6}
	o := redislock.LockOptions{Key: "baton", TTL: timing.TTL, WaitReplicas: 1}
	rival := o
	o.NodeID, rival.NodeID = "a", "b"
	b := designedLock(t, open(t, master), rival)
	replicated(t, b)
	replica.Freeze()

	names := make(chan string, 100)
	for i := range 100 {
		names <- "owner-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	leads, stopped := make(chan *elector.Term, 10), make(chan struct{})
	e, err := elector.New(designedLock(t, far, o), func(ctx context.Context, term *elector.Term) error {
		leads <- term
		<-ctx.Done()
		return nil
	}, elector.Config{
		NodeID: "a", Timing: timing, PollInterval: time.Second,
		NewOwner: func() (string, error) { return <-names, nil },
		Observe: func(ev elector.Event) {
			if ev.Kind == elector.EventStoreLost {
				replica.Thaw() // this is after the first attempt, whose release is still on its way
			}
		},
		Die: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(stopped); _ = e.Run(ctx) }()
	defer func() { stop(); <-stopped }()
	term := testsupport.Receive(t, "a node leads", leads)
	close(late.let)
	testsupport.Receive(t, "the late release to be carried out", late.arrived)
	answer, err := b.Acquire(t.Context(), elector.Candidate{Owner: "rival"})
	if err == nil && answer.Outcome == elector.Won && term.Trusted() {
		t.Errorf("b leads under epoch %d while a is trusted for another %v, under %d", answer.Epoch, term.UntilHardStop(), term.Epoch())
	}
}

// replicated waits until the replica acknowledges.
func replicated(t *testing.T, l *redislock.Lock) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		a, err := l.Acquire(ctx, elector.Candidate{Owner: "first"})
		cancel()
		if err == nil && a.Outcome == elector.Won {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if err := l.Release(t.Context(), "first", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
}

// If a lock is given back because too few replicas had it, no other node must be woken, because it would fail in the same way.
func TestALockThatTooFewReplicasHadWakesNobody(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			s := open(t, r)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hints := make(chan elector.Hint, 16)
			go redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: hints})
			<-hints // the subscription works
			o.Key, o.NodeID, o.TTL, o.WaitReplicas = "baton", "a", 10*time.Second, 1
			attempt, end := context.WithTimeout(t.Context(), 2*time.Second)
			defer end()
			if a, err := designedLock(t, s, o).Acquire(attempt, elector.Candidate{Owner: "o1"}); err == nil {
				t.Fatalf("%+v without a replica", a)
			}
			// A message that is published now arrives after all messages of the release.
			c := r.Client(t)
			testsupport.Await(t, "the lock is given back", func() bool { return c.Num("EXISTS", "baton") == 0 })
			c.Do("PUBLISH", "{baton}:wake", "control")
			for {
				switch testsupport.Receive(t, "the later hint", hints) {
				case elector.HintControl:
					return
				case elector.HintReleased:
					t.Error("the other nodes were woken up")
				case elector.HintSubscribed, elector.HintInterrupted: // hints about the subscription itself
				}
			}
		})
	}
}

// If the connection breaks during the wait for replicas, the lock was not given back, and no release is on its way. So the same owner
// gets the answer that it has won.
func TestACutWhileWaitingForReplicasDoesNotSpendTheOwner(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	p := master.Proxy()
	far := redistest.Open(t, redisconn.Options{URL: master.URLThrough(p)})
	lock := designedLock(t, far, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 10 * time.Second, WaitReplicas: 1})
	replicated(t, lock)
	replica.Freeze()
	acquired := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := lock.Acquire(ctx, elector.Candidate{Owner: "o1"})
		acquired <- err
	}()
	c := master.Client(t)
	testsupport.Await(t, "the lock waits for replicas", func() bool {
		return strings.Contains(c.Str("INFO", "clients"), "blocked_clients:1\r\n")
	})
	p.Cut()
	if err := testsupport.Receive(t, "the attempt ends", acquired); err == nil || errors.Is(err, elector.ErrSpent) ||
		errors.Is(err, elector.ErrRefused) {
		t.Errorf("%v; want an outcome that is unknown, and an owner that may ask again", err)
	}
	replica.Thaw()
	testsupport.AwaitNoError(t, "it is won", func() error {
		a, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
		if err == nil && a.Outcome != elector.Won {
			err = fmt.Errorf("asked again: %+v", a)
		}
		return err
	})
}
