package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

func TestEveryRequestAndReplyIsAStep(t *testing.T) {
	var seen []string
	var fail string
	errStop := errors.New("stop")
	s, err := redisconn.Open(redisconn.Options{
		URL: testsupport.StartRedis(t).URL(), ClientName: "test", Timeout: time.Second,
		Dial: redistest.Dial(func(step string) error {
			seen = append(seen, step)
			if step == "before TIME" {
				time.Sleep(1200 * time.Millisecond)
			}
			if step == fail {
				return errStop
			}
			return nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	large := strings.Repeat("x", 100_000) // arrives in several pieces
	script := redis.NewScript(1, "return redis.call('GET', KEYS[1])")
	run := func(do func(ctx context.Context, c redisconn.Conn) error) error {
		c, err := s.Conn(t.Context(), "k")
		if err != nil {
			return err
		}
		defer c.Close() // returns the connection to the pool
		return do(t.Context(), c)
	}
	for _, c := range []struct {
		steps string
		do    func(ctx context.Context, c redisconn.Conn) error
	}{
		{"SET", func(ctx context.Context, c redisconn.Conn) error {
			_, err := redis.DoContext(c, ctx, "set", "k", large)
			return err
		}},
		{"GET", func(ctx context.Context, c redisconn.Conn) error {
			text, err := redis.String(redis.DoContext(c, ctx, "GET", "k"))
			if text != large {
				err = errors.Join(err, errors.New("another text"))
			}
			return err
		}},
		{"EVALSHA", func(ctx context.Context, c redisconn.Conn) error { // the script is not known yet, but there is only one step
			_, err := script.DoContext(ctx, c, "k")
			return err
		}},
		{"HSET", func(ctx context.Context, c redisconn.Conn) error { // the commands are sent together
			commands := []redisconn.Command{redisconn.Cmd("HSET", "h", "f", large), redisconn.Cmd("HGETALL", "h"),
				redisconn.Cmd("HGET", "h", "g")}
			if err := redisconn.SendAll(c, commands...); err != nil {
				return err
			}
			_, err := redisconn.ReceiveAll(ctx, c)
			return err
		}},
		{"HSCAN", func(ctx context.Context, c redisconn.Conn) error {
			pace := redisconn.NewScanPace().From(100) // one command returns all keys
			_, err := c.ScanKey(ctx, "HSCAN", "h", "0", &pace, func() bool { return false }, func([]byte) {})
			return err
		}},
	} {
		seen = nil
		if err := run(c.do); err != nil {
			t.Errorf("%s: %v", c.steps, err)
		}
		before, after := "before "+c.steps, "after "+c.steps
		if c.steps == "EVALSHA" {
			after = "after EVAL"
		}
		if !slices.Equal(seen, []string{before, after}) {
			t.Errorf("%s: steps %q", c.steps, seen)
		}
	}
	// The caller gets the observer's error, and the connection is not used again.
	for _, fail = range []string{"before DEL", "after DEL"} {
		if err := run(func(ctx context.Context, c redisconn.Conn) error {
			_, err := redis.DoContext(c, ctx, "DEL", "k")
			return err
		}); !errors.Is(err, errStop) {
			t.Errorf("%s: %v", fail, err)
		}
		there := fail == "before DEL"
		if err := run(func(ctx context.Context, c redisconn.Conn) error {
			found, err := redis.Bool(redis.DoContext(c, ctx, "EXISTS", "k"))
			if found != there {
				err = errors.Join(err, fmt.Errorf("the key is there: %v", found))
			}
			return err
		}); err != nil {
			t.Errorf("%s: %v", fail, err)
		}
	}
	fail = ""
	// A step may take longer than the time limit of a request.
	slow := func(ctx context.Context, c redisconn.Conn) error {
		_, err := redis.DoContext(c, ctx, "TIME")
		return err
	}
	if err := run(slow); err != nil {
		t.Error(err)
	}
}

// The first bytes of a replication stream are a step. If that step fails, every later read returns the step's error, and so does every new
// deadline.
func TestAStreamThatWasEndedAtAStepSaysWhy(t *testing.T) {
	errStop := errors.New("stop")
	dial := redistest.Dial(func(step string) error {
		if step == redistest.After("PSYNC") {
			return errStop
		}
		return nil
	})
	conn, err := dial(t.Context(), "tcp", testsupport.StartRedis(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 512)); n == 0 || !errors.Is(err, errStop) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); !errors.Is(err, errStop) {
		t.Errorf("the deadline: %v", err)
	}
	if _, err := conn.Read(make([]byte, 512)); !errors.Is(err, errStop) {
		t.Errorf("read on: %v", err)
	}
}
