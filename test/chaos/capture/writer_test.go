package capture

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// rate is how many commands a second all writers together send, if they get that far.
	rate     = 5000
	batch    = 25
	patience = 2 * time.Second
)

// writer sends commands to the masters of their keys. Each may fail.
type writer struct {
	store           store
	commands        commands
	seldomUntil     time.Time // see flushing
	tags, databases int
	rng             *rand.Rand
	conns           map[string]*conn  // by address
	tag             string            // of the keys that are drawn
	db              int               // which is selected
	dumps           map[string][]byte // what RESTORE makes a key of each type of

	sent, refused, redirected, lost atomic.Int64
}

// conn is a connection to a master, with a database selected.
type conn struct {
	redis.Conn
	db int
}

// run writes until stop.
func (w *writer) run(stop context.Context) {
	defer w.drop()
	pause := time.NewTicker(batch * writers * time.Second / rate)
	defer pause.Stop()
	for stop.Err() == nil {
		if w.send() != nil {
			w.lost.Add(1)
			w.drop()
			w.store.doubt()
			sleep(stop, 50*time.Millisecond)
		}
		select {
		case <-pause.C:
		case <-stop.Done():
		}
	}
}

// send sends a batch. Its error says that the connections are not to be used again.
func (w *writer) send() error {
	tag, master, err := w.store.draw(w.rng)
	if err != nil {
		return err
	}
	w.tag = tag
	c, err := w.at(master.Addr())
	if err != nil {
		return err
	}
	w.db = c.db
	var sent [][]any
	for len(sent) < batch {
		sent = append(sent, w.draw()...)
	}
	for _, args := range sent {
		if err := c.Send(args[0].(string), args[1:]...); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	var asks []ask
	for _, args := range sent {
		_, err := c.Receive()
		if err == nil {
			w.sent.Add(1)
			continue
		}
		if c.Err() != nil {
			return err
		}
		switch words := strings.Fields(err.Error()); words[0] {
		case "READONLY":
			return err
		case "ASK":
			asks = append(asks, ask{words[2], args})
			continue
		case "MOVED", "CLUSTERDOWN":
			w.store.doubt()
		}
		w.refused.Add(1) // such as WRONGTYPE
	}
	return w.follow(asks)
}

// ask is a command that another master carries out, to which a slot is being moved.
type ask struct {
	address string
	args    []any
}

// follow sends commands to where the slot is moved to.
func (w *writer) follow(asks []ask) error {
	for _, a := range asks {
		c, err := w.at(a.address)
		if err != nil {
			return err
		}
		if _, err := c.Do("ASKING"); err != nil {
			return err
		}
		switch _, err := c.Do(a.args[0].(string), a.args[1:]...); {
		case err == nil:
			w.sent.Add(1)
			w.redirected.Add(1)
		case c.Err() != nil:
			return err
		default:
			w.refused.Add(1)
		}
	}
	return nil
}

// at is the connection to a server.
func (w *writer) at(address string) (*conn, error) {
	if c := w.conns[address]; c != nil {
		return c, nil
	}
	db := w.rng.IntN(w.databases)
	opened, err := redis.Dial("tcp", address, redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience),
		redis.DialWriteTimeout(patience), redis.DialDatabase(db))
	if err != nil {
		return nil, err
	}
	if w.conns == nil {
		w.conns = map[string]*conn{}
	}
	w.conns[address] = &conn{opened, db}
	if _, err := opened.Do("FUNCTION", "LOAD", "REPLACE", library); err != nil {
		return nil, err
	}
	if w.dumps == nil {
		err = w.dump(opened)
	}
	return w.conns[address], err
}

// dump makes what RESTORE takes.
func (w *writer) dump(c redis.Conn) error {
	dumps := map[string][]byte{}
	for kind, command := range map[string][]any{
		"string": {"SET", w.word("{dumped}"), w.word("{v}")},
		"set":    {"SADD", w.word("{dumped}"), w.word("{m}"), w.word("{m}")},
		"zset":   {"ZADD", w.word("{dumped}"), 7, w.word("{m}")},
	} {
		if _, err := c.Do("DEL", command[1]); err != nil {
			return err
		}
		if _, err := c.Do(command[0].(string), command[1:]...); err != nil {
			return err
		}
		var err error
		if dumps[kind], err = redis.Bytes(c.Do("DUMP", command[1])); err != nil {
			return err
		}
	}
	w.dumps = dumps
	return nil
}

func (w *writer) drop() {
	for _, c := range w.conns {
		_ = c.Close() // nothing is expected of what was written
	}
	w.conns = nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
