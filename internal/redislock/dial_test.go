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

// If a server accepts a connection and never answers, an attempt ends with its context, with every scheme of the URL.
func TestDiallingASilentServerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, no program answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, scheme := range []string{"redis", "rediss"} {
		s := redistest.Open(t, redisconn.Options{URL: scheme + "://" + l.Addr().String() + "/0", ClientName: "test",
			Timeout: time.Hour}) // the store's limit is long, so that only the context ends an attempt
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
			acquired := make(chan error, 1)
			go func() {
				_, err := lock.Acquire(ctx, elector.Candidate{Owner: "o1"})
				acquired <- err
			}()
			err := testsupport.Receive(t, scheme+": acquire ends with its "+name, acquired)
			if err == nil || errors.Is(err, elector.ErrRefused) {
				t.Errorf("%s, %s: %v; want it unknown", scheme, name, err)
			}
			cancel()
		}
	}
}
