package redislock_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

func TestTheDocumentedUserCanLeadStandByAndBeAsked(t *testing.T) {
	t.Parallel()
	for name, o := range designs {
		if o.Format == script.Redisson {
			continue // this lock has its own channel
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, opts := redistest.StartWithUser(t)
			s := openWith(t, opts)
			o.Key, o.NodeID, o.TTL = "baton", "a", 3*time.Second
			a := campaign(t, s, o)
			a.term(t)
			testsupport.AwaitNoError(t, "the node watches", func() error { return a.heard(0) })
			o.NodeID = "b"
			b := campaign(t, s, o)
			testsupport.AwaitNoError(t, "the other node stands by", func() error {
				if b.elector.Holder() != "a" {
					return errors.New("it knows no leader")
				}
				return nil
			})
			e := redislock.NewElection(s, "baton", o.Format)
			if _, _, err := e.StepDown(t.Context(), "b", "test"); err != nil {
				t.Fatal(err)
			}
			b.term(t)
			p, err := e.State(t.Context(), 10)
			if err != nil || p.Leader != "b" || len(p.Nodes) != 2 || len(p.Events) < 3 {
				t.Errorf("picture %+v, %v", p, err)
			}
		})
	}
}

func TestWhoMayNotWriteTheHistoryLeadsAllTheSame(t *testing.T) {
	t.Parallel()
	for name, o := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, opts := redistest.StartWithUser(t)
			must(t, r, "ACL", "SETUSER", "baton", "~redisson_lock__channel:*", "-xadd")
			o.Key, o.NodeID, o.TTL = "baton", "a", 3*time.Second
			lock, err := redislock.NewLock(openWith(t, opts), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(lock.Close)
			won, err := acquireOnce(t, lock, "o1")
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire: %+v, %v", won, err)
			}
			if _, err := lock.Renew(t.Context(), "o1", won.Epoch); err != nil {
				t.Errorf("renew: %v", err)
			}
			if was, err := lock.GiveUp(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil || !was {
				t.Errorf("give up: %t, %v", was, err)
			}
		})
	}
}

// The name of a connection is only for CLIENT LIST. So a node must also lead if an ACL of Redis or of the Sentinels forbids the name.
func TestANodeThatMayNotNameItsConnectionsLeads(t *testing.T) {
	t.Parallel()
	sentinel := testsupport.StartSentinel(t, testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
	for _, s := range sentinel.Sentinels() {
		must(t, s, "ACL", "SETUSER", "looker", "reset", "on", ">watchman", "+sentinel|get-master-addr-by-name")
	}
	must(t, sentinel.Master(), "ACL", testsupport.DocumentedUser(t)...)
	must(t, sentinel.Master(), "ACL", "SETUSER", "baton", "-client|setname")
	o := sentinelOptions(sentinel)
	o.Sentinel.Username, o.Username, o.Password, o.ClientName = "looker", "baton", secret("PASSWORD"), "baton a"
	campaign(t, openWith(t, o), redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 3 * time.Second}).term(t)
}

// A changed password is used at the next dial.
func TestThePasswordIsAskedForAtEveryDial(t *testing.T) {
	t.Parallel()
	r, opts := redistest.StartWithUser(t)
	var pw atomic.Value
	pw.Store("wrong")
	opts.Password = func() (string, error) { return pw.Load().(string), nil }
	lock := newLock(t, openWith(t, opts), "baton", "a", time.Second)
	if _, err := acquireOnce(t, lock, "o1"); !errors.Is(err, elector.ErrRefused) || !strings.Contains(err.Error(), "redis.password_file") {
		t.Errorf("with a wrong password: %v", err)
	}
	must(t, r, "ACL", "SETUSER", "baton", ">wrong")
	if _, err := acquireOnce(t, lock, "o1"); err != nil {
		t.Errorf("once it is right: %v", err)
	}
	opts.Password = func() (string, error) { return "", errors.New("no such file") }
	lock = newLock(t, openWith(t, opts), "baton", "b", time.Second)
	if _, err := acquireOnce(t, lock, "o1"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}
