package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// watchEvery is the time between two reads of the lock. It is the precision of the failover times.
	watchEvery = 5 * time.Millisecond
	// eventsEvery is the time between two reads of the election's history.
	eventsEvery = 200 * time.Millisecond
	// stripEvery is the time of one column in the strip of leaders.
	stripEvery = 500 * time.Millisecond
	stripKept  = 400
)

// moment is the state of the election at one moment. It is read from the keys that the election publishes in Redis.
type moment struct {
	owner string // value of the lock, which differs for each term; "" while no node leads
	node  string // the node that leads
	epoch int64
	left  time.Duration // remaining time of the lease
}

// watcher reads the election from outside the nodes: the leader, the number of terms, and the times without a leader.
type watcher struct {
	server    *server
	events    *eventLog
	recording *recording // nil if no picture is wanted

	mu        sync.Mutex
	now       moment
	lastOwner string
	trouble   error // error of Redis, if it does not answer the demo
	terms     int
	outage    *outage
	failovers []time.Duration
	strip     []string // the leaders, one per stripEvery, the newest last; "" if no node led
	stripAt   time.Time
	lastEvent string // id of the last event that was read
	won       int    // number of terms in the history
}

// outage is the time from the moment when a leader stops working until the next term.
type outage struct {
	owner, node string
	since       time.Time
}

func newWatcher(s *server, d *eventLog) *watcher {
	return &watcher{server: s, events: d, lastEvent: "0"}
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	var conn redis.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for events := (time.Time{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var err error
		if conn == nil {
			conn, err = w.server.dial(ctx)
		}
		if err == nil {
			err = w.lookOnce(ctx, conn)
		}
		if err == nil && time.Since(events) > eventsEvery {
			events = time.Now()
			err = w.readEvents(ctx, conn)
		}
		w.setTrouble(err)
		if err != nil && conn != nil {
			_ = conn.Close()
			conn = nil
		}
	}
}

func (w *watcher) setTrouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = err
}

func (w *watcher) lookOnce(ctx context.Context, conn redis.Conn) error {
	lock := w.server.lockKey()
	for _, c := range []redis.Args{{"GET", lock}, {"PTTL", lock}, {"HMGET", "{" + lock + "}:term", "node_id", "epoch"}} {
		if err := conn.Send(c[0].(string), c[1:]...); err != nil {
			return err
		}
	}
	replies, err := redis.Values(redis.DoContext(conn, ctx, ""))
	if err != nil {
		return err
	}
	owner, err := redis.String(replies[0], nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return err
	}
	left, err := redis.Int64(replies[1], nil)
	if err != nil {
		return err
	}
	term, err := redis.Strings(replies[2], nil)
	if err != nil {
		return err
	}
	now := moment{owner: owner, left: time.Duration(left) * time.Millisecond}
	now.epoch, _ = strconv.ParseInt(term[1], 10, 64) // missing before the first term
	if owner != "" {
		now.node = term[0]
	}
	w.saw(now, time.Now())
	return nil
}

// saw records a moment. If the value of the lock has changed, a new term has begun.
func (w *watcher) saw(now moment, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
	w.recording.leads(now.node, at)
	if at.Sub(w.stripAt) >= stripEvery {
		w.stripAt = at
		w.strip = append(w.strip, now.node)
		w.strip = w.strip[max(0, len(w.strip)-stripKept):]
	}
	if now.owner == "" || now.owner == w.lastOwner {
		return
	}
	w.lastOwner = now.owner
	w.terms++
	if w.outage != nil {
		w.failovers = append(w.failovers, at.Sub(w.outage.since))
		w.outage = nil
	}
}

// down records that a node died or froze. The argument how is the signal that did this, or 0 if there was no signal. If the node led, this
// begins a failover.
func (w *watcher) down(id string, at time.Time, how syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage == nil && w.now.owner != "" && w.now.node == id {
		w.outage = &outage{w.now.owner, id, at}
		w.recording.fault(id, at, how)
	}
}

// leads reports whether this node had the lock when the watcher last read it.
func (w *watcher) leads(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now.owner != "" && w.now.node == id
}

// up records that a frozen node runs again. If the node still holds the lock, its freeze does not count as a failover.
func (w *watcher) up(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage != nil && w.outage.node == id && w.now.owner == w.outage.owner {
		w.outage = nil
	}
}

// succeeded reports whether another term has begun since a node went down. It returns true if the node did not lead.
func (w *watcher) succeeded(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outage == nil || w.outage.node != id
}

func (w *watcher) note(format string, args ...any) { w.events.note(format, args...) }

// state returns a copy of the watcher's state: the last moment, the number of terms, the failovers, and the last error.
func (w *watcher) state() (now moment, terms int, failovers []time.Duration, trouble error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.terms, append([]time.Duration(nil), w.failovers...), w.trouble
}

// led returns which node led at each of the last n moments, the latest moment last.
func (w *watcher) led(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.strip[max(0, len(w.strip)-max(n, 0)):])
}

// leader returns the node that leads. It returns "" if no node leads, or if the leader is unknown.
func (w *watcher) leader() string {
	now, _, _, trouble := w.state()
	if trouble != nil {
		return ""
	}
	return now.node
}

// wonOne counts a term that the event history contains. It returns how many such terms were counted so far.
func (w *watcher) wonOne() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.won++
	return w.won
}

// hasLed reports whether the watcher has seen a term, in the lock's key or in the event history.
func (w *watcher) hasLed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terms > 0 || w.won > 0
}

// readEvents appends new events of the election's history to the event log.
func (w *watcher) readEvents(ctx context.Context, conn redis.Conn) error {
	entries, err := redis.Values(redis.DoContext(conn, ctx, "XRANGE", "{"+w.server.lockKey()+"}:events", "("+w.lastEvent, "+"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		pair, err := redis.Values(entry, nil)
		if err != nil || len(pair) != 2 {
			return fmt.Errorf("unexpected entry in the event history: %v", entry)
		}
		id, _ := redis.String(pair[0], nil)
		fields, err := redis.StringMap(pair[1], nil)
		if err != nil {
			return fmt.Errorf("unexpected entry in the event history: %w", err)
		}
		w.lastEvent = id
		text := fmt.Sprintf("%s: %s", fields["node_id"], strings.ReplaceAll(fields["event"], "_", " "))
		if fields["event"] == "won" {
			text += fmt.Sprintf(", term %d", w.wonOne())
		}
		if fields["reason"] != "" {
			text += " (" + fields["reason"] + ")"
		}
		w.events.note("%s", text)
	}
	return nil
}
