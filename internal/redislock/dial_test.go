package redislock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// A server that accepts and says nothing: whatever the scheme, an attempt ends
// when its context does.
func TestDiallingASilentServerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, no program answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, scheme := range []string{"redis", "rediss"} {
		s := redistest.Open(t, redisconn.Options{URL: scheme + "://" + l.Addr().String() + "/0", ClientName: "test"})
		soon := testsupport.Paced(2 * time.Second)
		lock := newLock(t, s, "baton", "a", time.Second)
		for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 200*time.Millisecond)
			},
			"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(200*time.Millisecond, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := end(t.Context())
			began := testsupport.StartStopwatch(t)
			_, err := lock.Acquire(ctx, elector.Candidate{Owner: "o1"})
			cancel()
			if took := began.Took(); err == nil || errors.Is(err, elector.ErrRefused) || took > soon {
				t.Errorf("%s, %s: acquire ended after %v: %v; want it unknown after 200ms", scheme, name, took, err)
			}
		}
	}
}
