package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// event is one entry of the election's history.
type event struct {
	id     string // the entry's id in the stream: milliseconds of Redis' clock, which is also our clock
	at     time.Time
	name   string
	node   string
	epoch  int64
	reason string
}

// jobRun is one run, from the history or from the ledger of the slots.
type jobRun struct {
	id, job, state, node string
	slot, epoch          int64
	started, finished    time.Time
	rows                 int64
	err                  string
}

// history reads the histories of an election and of its jobs, before Redis cuts them.
type history struct {
	redis *testsupport.Redis
	data  func() ([]string, error) // the servers of the data
	work  sync.WaitGroup

	asking sync.Mutex // held during a request to Redis
	conn   redis.Conn
	last   map[string]string // the last id that was read from each stream

	mu      sync.Mutex
	leading string // "" if no node leads
	events  []event
	runs    map[string]jobRun // by ID, including runs in progress
}

const (
	followEvery = 50 * time.Millisecond
	askWithin   = 500 * time.Millisecond
)

func startHistory(t *testing.T, server *testsupport.Redis, data func() ([]string, error)) *history {
	h := &history{redis: server, data: data, runs: map[string]jobRun{}, last: map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		h.work.Wait()
		h.drop()
	})
	h.work.Go(func() {
		for ctx.Err() == nil {
			_ = h.follow() // Redis is away: that is what this is about
			pause(ctx, followEvery)
		}
	})
	return h
}

func dial(addr string) (redis.Conn, error) {
	return redis.Dial("tcp", addr, redis.DialConnectTimeout(askWithin), redis.DialReadTimeout(askWithin), redis.DialWriteTimeout(askWithin))
}

func (h *history) do(command string, args ...any) (any, error) {
	if h.conn == nil {
		conn, err := dial(h.redis.Addr())
		if err != nil {
			return nil, err
		}
		h.conn = conn
	}
	reply, err := h.conn.Do(command, args...)
	if err != nil {
		h.drop()
	}
	return reply, err
}

func (h *history) drop() {
	if h.conn != nil {
		_ = h.conn.Close() // nothing was written
		h.conn = nil
	}
}

// follow reads the new entries.
func (h *history) follow() error {
	h.asking.Lock()
	defer h.asking.Unlock()
	if err := h.followLeader(); err != nil {
		return err
	}
	err := h.entries("{"+lockKey+"}:events", func(id string, f map[string]string) {
		ms, _, _ := strings.Cut(id, "-")
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, event{
			id: id, at: time.UnixMilli(number(ms)), name: f["event"], node: f["node_id"], epoch: number(f["epoch"]), reason: f["reason"],
		})
	})
	if err != nil {
		return err
	}
	for _, job := range jobNames {
		key := "{" + lockKey + "}:job:" + job
		fields, err := redis.StringMap(h.do("HGETALL", key))
		if err != nil {
			return err
		}
		for name, text := range fields {
			if !strings.HasPrefix(name, "run:") {
				continue
			}
			var open map[string]string
			if err := json.Unmarshal([]byte(text), &open); err != nil {
				return fmt.Errorf("open run of %s: %w", job, err)
			}
			h.note(runOf(job, open))
		}
		if err := h.entries(key+":runs", func(_ string, f map[string]string) {
			if f["state"] != "missed" {
				h.note(runOf(job, f))
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// note stores a run. The end of a run is in the stream, and the beginning never comes after the end.
func (h *history) note(r jobRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[r.id] = r
}

// followLeader records which node leads. While Redis does not answer, the last leader counts as the leader.
func (h *history) followLeader() error {
	owner, err := redis.String(h.do("GET", lockKey))
	if err != nil && err != redis.ErrNil { //nolint:errorlint // redigo's own, and never wrapped
		return err
	}
	term, err := redis.StringMap(h.do("HGETALL", "{"+lockKey+"}:term"))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leading = ""
	if owner != "" && owner == term["owner"] {
		h.leading = term["node_id"]
	}
	return nil
}

// entries reads the new entries of a stream.
func (h *history) entries(key string, each func(id string, fields map[string]string)) error {
	from := "-"
	if last := h.last[key]; last != "" {
		from = "(" + last
	}
	all, err := redis.Values(h.do("XRANGE", key, from, "+"))
	if err != nil {
		return err
	}
	for _, entry := range all {
		parts, err := redis.Values(entry, nil)
		if err != nil {
			return err
		}
		id, err := redis.String(parts[0], nil)
		if err != nil {
			return err
		}
		fields, err := redis.StringMap(parts[1], nil)
		if err != nil {
			return err
		}
		each(id, fields)
		h.last[key] = id
	}
	return nil
}

func runOf(job string, fields map[string]string) jobRun {
	f := func(name string) string { return fields[name] }
	return jobRun{
		id: f("id"), job: job, state: f("state"), node: f("node"), slot: number(f("slot")), epoch: number(f("epoch")),
		started: time.UnixMilli(number(f("started"))), finished: time.UnixMilli(number(f("finished"))), rows: number(f("rows")), err: f("error"),
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // a missing number is 0
	return n
}

func (h *history) leader() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leading
}

// result returns all events and runs so far, in order.
func (h *history) result() ([]event, []jobRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	runs := slices.SortedFunc(maps.Values(h.runs), func(a, b jobRun) int { return a.started.Compare(b.started) })
	return slices.Clone(h.events), runs
}

// pending returns the names of the live keys and stages in Redis that are not flushed yet.
func (h *history) pending() ([]string, error) {
	h.asking.Lock()
	defer h.asking.Unlock()
	addrs, err := h.data()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, addr := range addrs {
		some, err := pendingAt(addr)
		if err != nil {
			return nil, err
		}
		left = append(left, some...)
	}
	return left, nil
}

// pendingAt returns the names of these keys on one server.
func pendingAt(addr string) (left []string, err error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // nothing was written
	for cursor := "0"; ; {
		reply, err := redis.Values(conn.Do("SCAN", cursor, "COUNT", 1000))
		if err != nil {
			return nil, err
		}
		keys, err := redis.Strings(reply[1], nil)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			staged := strings.Contains(key, ":baton:") && !strings.HasSuffix(key, ":baton:positions") // a deferral that stays
			if staged || slices.Contains(liveKeys, key) {
				left = append(left, key)
			}
		}
		if cursor, err = redis.String(reply[0], nil); err != nil || cursor == "0" {
			if err != nil {
				return nil, fmt.Errorf("scan: %w", err)
			}
			return left, nil
		}
	}
}
