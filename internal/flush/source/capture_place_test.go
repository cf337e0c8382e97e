package source

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// offsetOf returns the offset at the end of the master's history.
func offsetOf(t *testing.T, c testsupport.Client) int64 {
	t.Helper()
	_, rest, _ := strings.Cut(c.Str("INFO", "replication"), "master_repl_offset:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Values are read ahead of the position. Each page, even the first one, records how far: after a failover that lost these values, only that
// record leads to a pass.
func TestEveryPageSaysUpToWhereItsValuesWereRead(t *testing.T) {
	g := newRig(t)
	store, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), ClientName: "baton-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	d, err := Describe(Options{Job: "capture", Type: "capture", Key: "s:<id>", Value: "string", Rows: 10})
	if err != nil {
		t.Fatal(err)
	}
	cfg := flush.Config{Job: "capture"}
	d.Configure(&cfg, store)
	sources, err := cfg.NewSources([]string{"id", "$value"})
	if err != nil {
		t.Fatal(err)
	}
	position := ""
	for i, c := range []struct {
		what        string
		keys, pages int
	}{{"a pass", 25, 3}, {"many changes", 25, 3}, {"one change", 1, 1}} {
		what := c.what
		for key := range c.keys {
			g.Do("SET", fmt.Sprintf("s:%d", key), i)
		}
		st, ok, err := sources[0].Stage(t.Context(), fmt.Sprint("stage", i), position)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", what, ok, err)
		}
		g.Do("SET", "other", i) // the batch is taken already, and the master continues
		head, pages := offsetOf(t, g.Client), 0
		err = sources[0].Read(t.Context(), st, func(p flush.Page) error {
			pages++
			position = p.Move.To
			words := strings.Fields(position) // see capture's position
			if seen, err := strconv.ParseInt(words[3], 10, 64); err != nil || seen < head {
				t.Errorf("%s: page %d says %q, but its values are of %d at least", what, pages, position, head)
			}
			return nil
		})
		if err != nil || pages < c.pages {
			t.Errorf("%s: %d pages, %v", what, pages, err)
		}
		if err := sources[0].(flush.Discarder).Discard(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
}

// garbling is a connection that once reads garbled bytes within the replication stream.
type garbling struct {
	net.Conn
	next   *atomic.Bool // the next bytes of a stream are garbled
	stream atomic.Bool
}

func (c *garbling) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("PSYNC")) {
		c.stream.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *garbling) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.stream.Load() && c.next.CompareAndSwap(true, false) {
		copy(b, bytes.Repeat([]byte("?"), n))
	}
	return n, err
}

// After garbled bytes it is unknown which commands they were. So the position is given up, and all keys are read. To continue from the
// position would miss these changes.
func TestAGarbledStreamKeepsNoPlace(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	var garble atomic.Bool
	j.open = func(func(string) error) *redisconn.Store {
		s, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), ClientName: "baton-test",
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &garbling{Conn: c, next: &garble}, err
			}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	j.told()
	garble.Store(true)
	g.Do("SET", "s:1", "b")
	testsupport.Await(t, "the stream is garbled", func() bool { return !garble.Load() })
	for limit := 0; ; limit++ { // a run meanwhile fails and reports why
		if err := j.run(t.Context()); err == nil && j.table.texts()["1"] == "b" {
			break
		} else if limit > 6000 {
			t.Fatalf("it never goes on: %v", err)
		}
		if err := j.waiter.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	j.mustEqual(g.Client)
	if notes := j.told(); !strings.Contains(notes, "all keys are read") {
		t.Errorf("notes: %q", notes)
	}
}
