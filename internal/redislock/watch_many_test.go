package redislock_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

func TestASubscriptionThatEndsLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	s := newSubscribers(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	go redislock.WatchAll(ctx, s.store, redislock.Watched{LockKey: "c"})
	s.await(3)
	cancel()
	s.await(2)
	before := s.ids()
	time.Sleep(4 * time.Second) // longer than the interval in which all subscriptions check whether they are outdated
	if after := s.ids(); !slices.Equal(before, after) {
		t.Errorf("the subscriptions were %v, and are %v", before, after)
	}
}

func TestSubscriptionsComeBackOnceWhereOneIsCut(t *testing.T) {
	t.Parallel()
	s := newSubscribers(t, "a", "b", "c")
	if _, err := s.conn.Do("CLIENT", "KILL", "ID", s.ids()[0]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	s.await(3)
	before := s.ids()
	time.Sleep(4 * time.Second)
	if after := s.ids(); !slices.Equal(before, after) {
		t.Errorf("the subscriptions were %v, and are %v: they take each other down", before, after)
	}
}

// subscribers are subscriptions on one store.
type subscribers struct {
	t     *testing.T
	store *redisconn.Store
	conn  redis.Conn
}

func newSubscribers(t *testing.T, keys ...string) *subscribers {
	t.Helper()
	server := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: server.URL()})
	for _, key := range keys {
		go redislock.WatchAll(t.Context(), store, redislock.Watched{LockKey: key})
		time.Sleep(time.Second) // so that the subscriptions do not check at the same moments
	}
	s := &subscribers{t, store, server.Conn()}
	s.await(len(keys))
	return s
}

// ids returns the ids of the subscribed connections.
func (s *subscribers) ids() []string {
	s.t.Helper()
	list, err := redis.String(s.conn.Do("CLIENT", "LIST", "TYPE", "pubsub"))
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(list) {
		ids = append(ids, regexp.MustCompile(`^id=(\d+)`).FindStringSubmatch(line)[1])
	}
	slices.Sort(ids)
	return ids
}

func (s *subscribers) await(n int) {
	s.t.Helper()
	testsupport.Await(s.t, fmt.Sprintf("%d subscriptions", n), func() bool { return len(s.ids()) == n })
}
