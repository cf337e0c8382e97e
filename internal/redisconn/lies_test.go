package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/headers"
	"baton/internal/testsupport"
)

// ways contains the ways in which baton reads replies.
var ways = map[string]func(context.Context, Conn) error{
	"a command": func(ctx context.Context, c Conn) error {
		_, err := redis.DoContext(c, ctx, "HGETALL", "k")
		return err
	},
	"a pipeline": func(ctx context.Context, c Conn) error {
		if err := SendAll(c, Cmd("GET", "k")); err != nil {
			return err
		}
		_, err := ReceiveAll(ctx, c)
		return err
	},
	"texts": func(ctx context.Context, c Conn) error {
		_, err := hmget(ctx, c, []string{"k", "l"}, "a", "b")
		return err
	},
	"nested texts": func(ctx context.Context, c Conn) error {
		q := &Question{Commands: 1, Nested: true, Read: func(*Answers) error { return nil }}
		q.Write = func(buf []byte, _ int) []byte { return AppendCommand(buf, 1, "XRANGE") }
		return c.Ask(ctx, q)
	},
	"a brief reply": func(ctx context.Context, c Conn) error {
		q := &Question{Commands: 1, Brief: func(int) bool { return true }, Read: func(*Answers) error { return nil }}
		q.Write = func(buf []byte, _ int) []byte { return AppendCommand(buf, 1, "EXEC") }
		return c.Ask(ctx, q)
	},
	"a scan": func(ctx context.Context, c Conn) error {
		_, err := c.ScanKey(ctx, "HSCAN", "k", "0", NewScanPace(), func() bool { return true }, func([]byte) {})
		return err
	},
}

// allocated returns the number of bytes that do has allocated in total, including freed bytes.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// lieMemory is the maximum memory that reading a lie may need, in bytes. It is much less than most of the lies announce.
const lieMemory = 64 << 20

// An absurd length must not end the process, must need no memory, and must be reported with the server and the remedy.
func TestALieOfAnyServerIsAnErrorAndCostsNoMemory(t *testing.T) {
	for i, lie := range testsupport.Lies {
		for name, ask := range ways {
			liar := testsupport.NewLiar(t, nil, lie)
			s, err := Open(Options{URL: "redis://" + liar.Addr(), ClientName: "baton-test", Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			// Nested texts are read without recursion, so their depth does no harm, and the reader waits for the missing rest.
			grave := i >= len(testsupport.Lies)-len(testsupport.GraveLies) && !(name == "nested texts" && strings.HasPrefix(lie, "*1\r\n"))
			patience := 200 * time.Millisecond // the time limit for bytes that never arrive
			if grave {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			used := allocated(func() {
				c, dialled := s.Conn(ctx, "k")
				if dialled != nil {
					t.Fatal(dialled)
				}
				err = Explain(ask(ctx, c))
				_ = c.Close()
			})
			cancel()
			if used > lieMemory {
				t.Errorf("lie %d, %.30q: %s took %d MiB", i, lie, name, used>>20)
			}
			if grave && err == nil {
				t.Errorf("lie %d, %.30q: %s believes it", i, lie, name)
			}
			excess, ok := errors.AsType[*headers.LimitError](err)
			if ok && (excess.Server != "redis "+liar.Addr() || !strings.Contains(err.Error(), "is this server a Redis?")) {
				t.Errorf("lie %d, %.30q: %s says %q", i, lie, name, err)
			}
			if grave && !ok && !errors.Is(err, errNotTexts) {
				t.Errorf("lie %d, %.30q: %s says %q, and nothing of the length", i, lie, name, err)
			}
			_ = s.Close()
		}
	}
}

// The same must hold for a Sentinel, for the master that the Sentinel names, for the node of a Cluster that is asked for the slots, and
// for the node that has the slots.
func TestALieOfASentinelOrOfACluster(t *testing.T) {
	for _, lie := range testsupport.GraveLies {
		liar := testsupport.NewLiar(t, nil, lie)
		host, port, _ := net.SplitHostPort(liar.Addr())
		points := map[string]string{"SENTINEL": fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port)}
		slots := map[string]string{"CLUSTER": fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)}
		for name, o := range map[string]Options{
			"sentinel":       {Sentinel: &SentinelOptions{Master: "m", Addresses: []string{liar.Addr()}}},
			"master":         {Sentinel: &SentinelOptions{Master: "m", Addresses: []string{testsupport.NewLiar(t, points, lie).Addr()}}},
			"cluster":        {Cluster: []string{liar.Addr()}},
			"a cluster node": {Cluster: []string{testsupport.NewLiar(t, slots, lie).Addr()}},
		} {
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			used := allocated(func() {
				_, err = s.Run(t.Context(), "k", func(c redis.Conn) (any, error) { return redis.DoContext(c, t.Context(), "GET", "k") })
			})
			if _, ok := errors.AsType[*headers.LimitError](err); !ok || used > lieMemory || !strings.Contains(err.Error(), liar.Addr()) {
				t.Errorf("%s, %.30q: %v, %d MiB", name, lie, err, used>>20)
			}
			_ = s.Close()
		}
	}
}
