package chaos

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

//go:embed write.lua
var writeLua string

// write is one numbered change, and its effect on the expected state.
type write struct {
	number int64
	args   []any // of the script: how many keys, the keys, the rest
	expect func(*state)
}

// writer changes data over its own direct connection to Redis. Either no other writer changes the same data, or the order of the changes
// does not matter. A write without an answer is sent again until there is one: the script knows the number of the last write that was
// applied, so that it is applied once even if Redis still finds the first copy in a socket. In a Cluster the writer follows redirections.
type writer struct {
	name  string
	tag   string   // the hash tag of all its keys; "": no Cluster has them
	addrs []string // the addresses of all servers that may know where the keys are
	addr  string   // the address of the server to which it writes
	asks  bool     // addr is only about to get the slot
	rng   *rand.Rand
	make  func(w *writer) (key string, args []any, expect func(*state))
	last  int64 // the number of the last write that was made
	acked int64 // the number of the last acknowledged write
	state *state
	conn  redis.Conn
}

var errGap = errors.New("a write that Redis had acknowledged is lost: this test's own ground is gone")

// run writes until stop, and returns when every write has been acknowledged.
func (w *writer) run(stop context.Context) error {
	defer w.drop()
	script := redis.NewScript(-1, writeLua)
	for stop.Err() == nil {
		batch := make([]write, 1+w.rng.IntN(8))
		for i := range batch {
			batch[i] = w.next()
		}
		for len(batch) > 0 {
			done, err := w.send(script, batch)
			for _, b := range batch[:done] {
				b.expect(w.state)
				w.acked = b.number
			}
			batch = batch[done:]
			if errors.Is(err, errGap) {
				return fmt.Errorf("%s: %w: %w", w.name, errGap, err)
			}
			if err != nil {
				w.drop()
				w.redirect(err)
				time.Sleep(20 * time.Millisecond)
			}
		}
		pause(stop, time.Duration(w.rng.IntN(50))*time.Millisecond)
	}
	return nil
}

func (w *writer) next() write {
	key, args, expect := w.make(w)
	w.last++
	own := "writer:" + w.name
	if w.tag != "" {
		own += ":{" + w.tag + "}"
	}
	keys := []any{own, key}
	// The keys of the script include the keys of rows. Otherwise a server that lacks some of these keys, because their slot is being
	// moved, would notice this only in the middle of the script.
	if step := map[any]int{"put": 4, "drop": 1, "play": 2}[args[0]]; step > 0 {
		for i := 3; i < len(args); i += step {
			keys = append(keys, fmt.Sprint(args[1], args[i]))
		}
	}
	all := append([]any{len(keys)}, keys...)
	return write{number: w.last, args: append(append(all, w.last), args...), expect: expect}
}

// redirect changes to the server that a Cluster has named, or to another server.
func (w *writer) redirect(err error) {
	switch said := strings.Fields(err.Error()); {
	case len(said) == 3 && (said[0] == "MOVED" || said[0] == "ASK"):
		w.addr, w.asks = said[2], said[0] == "ASK"
	case len(said) > 0 && said[0] == "TRYAGAIN":
	default:
		w.addr, w.asks = w.addrs[w.rng.IntN(len(w.addrs))], false
	}
}

// send sends the writes in a pipeline, and returns how many of them were acknowledged, from the first one on.
func (w *writer) send(script *redis.Script, batch []write) (done int, err error) {
	if w.conn == nil {
		// This time is longer than any freeze, because a late answer still counts.
		const patience = 20 * time.Second
		conn, err := redis.Dial("tcp", w.addr, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience))
		if err != nil {
			return 0, err
		}
		w.conn = conn
		if err := script.Load(conn); err != nil {
			return 0, err
		}
	}
	for _, b := range batch {
		if w.asks {
			if err := w.conn.Send("ASKING"); err != nil {
				return 0, err
			}
		}
		if err := script.SendHash(w.conn, b.args...); err != nil {
			return 0, err
		}
	}
	if err := w.conn.Flush(); err != nil {
		return 0, err
	}
	for range batch {
		if w.asks {
			if _, err := w.conn.Receive(); err != nil {
				return done, err
			}
		}
		if _, err := redis.Int(w.conn.Receive()); err != nil {
			if strings.HasPrefix(err.Error(), "GAP") && done == 0 {
				return done, fmt.Errorf("%w: %w", errGap, err)
			}
			return done, err
		}
		done++
	}
	return done, nil
}

func (w *writer) drop() {
	if w.conn != nil {
		_ = w.conn.Close() // every write is sent again on another connection
		w.conn = nil
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

const (
	counterFields = 3000
	rowIDs        = 800 // of each writer
	shards        = 8
)

// counts makes increments, mostly of a few fields and sometimes of thousands, so that stages have several parts and transactions take a
// while.
func counts(table string, key func(*rand.Rand) string) func(*writer) (string, []any, func(*state)) {
	return func(w *writer) (string, []any, func(*state)) {
		n := 1 + w.rng.IntN(5)
		if w.rng.IntN(300) == 0 {
			n = 2500
		}
		deltas := make(map[string]int64, n)
		for range n {
			deltas[fmt.Sprintf("a%04d", w.rng.IntN(counterFields))] += 1 + w.rng.Int64N(9)
		}
		args := []any{"count"}
		for field, delta := range deltas {
			args = append(args, field, delta)
		}
		return key(w.rng), args, func(s *state) {
			for field, delta := range deltas {
				s.count(table, field, delta)
			}
		}
	}
}

// plays makes increments of counters that each have their own key.
func plays(w *writer) (string, []any, func(*state)) {
	key, args, expect := counts("plays", func(*rand.Rand) string { return "changed:{play}" })(w)
	return key, append([]any{"play", "play:{play}:", "set"}, args[1:]...), expect
}

// events makes records that all differ, sometimes thousands at once.
func events(table, what string) func(*writer) (string, []any, func(*state)) {
	return func(w *writer) (string, []any, func(*state)) {
		n := 1 + w.rng.IntN(4)
		if w.rng.IntN(300) == 0 {
			n = 2500
		}
		args := []any{what}
		for i := range n {
			args = append(args, fmt.Sprintf("%s-%d-%d", w.name, w.last+1, i))
		}
		return table, args, func(s *state) {
			for _, id := range args[1:] {
				s.count(table, id.(string), 1)
			}
		}
	}
}

// rows puts and drops rows that no other writer touches.
func rows(table, prefix, index, indexType string) func(*writer) (string, []any, func(*state)) {
	return func(w *writer) (string, []any, func(*state)) {
		n := 1 + w.rng.IntN(3)
		if w.rng.IntN(300) == 0 {
			n = rowIDs / 2
		}
		ids := map[string]bool{}
		for range n {
			ids[fmt.Sprintf("%s-%03d", w.name, w.rng.IntN(rowIDs))] = true
		}
		args := []any{"drop", prefix, indexType}
		if w.rng.IntN(8) == 0 {
			for id := range ids {
				args = append(args, id)
			}
			return index, args, func(s *state) {
				for id := range ids {
					s.drop(table, id)
				}
			}
		}
		args[0] = "put"
		puts := make(map[string]row, len(ids))
		for id := range ids {
			r := row{name: fmt.Sprintf("né %x", w.rng.Uint64()), version: fmt.Sprint(w.last + 1)}
			if w.rng.IntN(3) > 0 {
				r.email = fmt.Sprintf("%d@example.com", w.rng.IntN(1e6))
			}
			puts[id] = r
			args = append(args, id, r.name, r.version, r.email)
		}
		return index, args, func(s *state) {
			for id, r := range puts {
				s.put(table, id, r)
			}
		}
	}
}
