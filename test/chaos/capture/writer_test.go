package capture

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

const (
	// rate is how many commands a second all writers together send, if they get that far.
	rate     = 5000
	batch    = 25
	patience = 2 * time.Second
)

// writer sends commands to whoever is the master. Each may fail.
type writer struct {
	store *testsupport.SentinelDaemon
	rng   *rand.Rand
	conn  redis.Conn
	db    int    // which is selected
	dump  []byte // what RESTORE makes a string of

	sent, refused, lost atomic.Int64
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
			sleep(stop, 50*time.Millisecond)
		}
		select {
		case <-pause.C:
		case <-stop.Done():
		}
	}
}

// send sends a batch. Its error says that the connection is not to be used again.
func (w *writer) send() error {
	if w.conn == nil {
		if err := w.connect(); err != nil {
			return err
		}
	}
	n := 0
	for n < batch {
		for _, args := range w.draw() {
			if err := w.conn.Send(args[0].(string), args[1:]...); err != nil {
				return err
			}
			n++
		}
	}
	if err := w.conn.Flush(); err != nil {
		return err
	}
	for range n {
		switch _, err := w.conn.Receive(); {
		case err == nil:
			w.sent.Add(1)
		case w.conn.Err() != nil, strings.HasPrefix(err.Error(), "READONLY"):
			return err
		default: // such as WRONGTYPE
			w.refused.Add(1)
		}
	}
	return nil
}

// connect opens a connection to who is the master as the Sentinels say just now.
func (w *writer) connect() error {
	master, err := w.store.AwaitMaster(nil)
	if err != nil {
		return err
	}
	w.db = w.rng.IntN(2)
	conn, err := redis.Dial("tcp", master.Addr(), redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience),
		redis.DialWriteTimeout(patience), redis.DialDatabase(w.db))
	if err != nil {
		return err
	}
	w.conn = conn
	if _, err := conn.Do("FUNCTION", "LOAD", "REPLACE", library); err != nil {
		return err
	}
	if _, err := conn.Do("SET", "dump", w.word("{v}")); err != nil {
		return err
	}
	w.dump, err = redis.Bytes(conn.Do("DUMP", "dump"))
	return err
}

func (w *writer) drop() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is expected of what was written
		w.conn = nil
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
