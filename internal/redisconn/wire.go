package redisconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/headers"
)

// Conn is a connection to Redis. Beside redigo's methods it can send many commands at once and read their texts into one buffer, see
// [Question], and scan a key. redigo makes several objects of every text; for rows by the hundred thousand that is most of baton's cost.
type Conn interface {
	redis.ConnWithContext
	redis.ConnWithTimeout

	// Ask asks a question. No other command may be under way on the connection. It also returns the error of q.Read.
	Ask(ctx context.Context, q *Question) error
	// ScanKey continues a pass over a key at cursor, "0" at the beginning, until it is over or there is enough. It returns the next
	// cursor, "0" when the pass is over. An element that each gets is valid until the last element of the reply has been handed over;
	// HSCAN and ZSCAN reply with pairs. pace bounds how much of the key one command visits, and learns from the replies.
	ScanKey(ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool,
		each func(element []byte)) (next string, err error)
	// CutOff announces that we are about to close the connection under a blocking command that is no longer needed. That says nothing
	// about the other connections: if it did, two that wait would end each other again and again.
	CutOff()
}

// wire is a connection of redigo that can also read and write directly.
type wire struct {
	redigo
	raw     net.Conn
	server  string // for messages
	timeout time.Duration
	broken  atomic.Bool

	reader  *bufio.Reader
	request []byte
	answers Answers
}

// redigo is the set of methods of every connection of that library.
type redigo interface {
	redis.ConnWithContext
	redis.ConnWithTimeout
}

func newWire(c redis.Conn, raw net.Conn, timeout time.Duration) *wire {
	return &wire{redigo: c.(redigo), raw: raw, timeout: timeout}
}

// The sizes of a wire's buffers: of the one for reading, and of those that it keeps for the next question.
const (
	wireReads = 64 << 10
	wireKeeps = 1 << 20
)

var (
	errBrokenWire = errors.New("this connection broke in the middle of a reply")
	errNotTexts   = errors.New("what Redis sent is something else than the texts that were asked for")
)

// Err implements redis.Conn.
func (w *wire) Err() error {
	if w.broken.Load() {
		return errBrokenWire
	}
	return w.redigo.Err()
}

// Ask implements [Conn].
func (w *wire) Ask(ctx context.Context, q *Question) error {
	if err := w.during(ctx, func() error { return w.exchange(q) }); err != nil {
		return err
	}
	defer w.forget()
	return q.Read(&w.answers)
}

// during runs do, which uses the wire directly. If do fails, or ctx ends, the connection is unusable; except after a refusal.
func (w *wire) during(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = w.raw.Close() }) // as redigo does
	err := do()
	if !stop() {
		err = ctx.Err()
	}
	if err == nil || errors.As(err, new(redis.Error)) {
		return err
	}
	w.broken.Store(true)
	_ = w.raw.Close() // its remaining replies are useless
	return headers.At(err, w.server)
}

// forget frees buffers that have become large.
func (w *wire) forget() {
	if cap(w.request) > wireKeeps || cap(w.answers.All) > wireKeeps {
		w.request, w.answers = nil, Answers{}
	}
}

func (w *wire) exchange(q *Question) error {
	w.request = w.request[:0]
	for i := range q.Commands {
		w.request = q.Write(w.request, i)
	}
	if err := w.send(); err != nil {
		return err
	}
	if err := w.answers.readAll(w.reader, q); err != nil {
		return err
	}
	return w.nothingLeft()
}

// send sends the request.
func (w *wire) send() error {
	if err := w.raw.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	if w.reader == nil {
		w.reader = bufio.NewReaderSize(inTime{w}, wireReads)
	}
	_, err := w.raw.Write(w.request)
	return err
}

func (w *wire) nothingLeft() error {
	if w.reader.Buffered() > 0 {
		return fmt.Errorf("%w: more than there were questions", errNotTexts)
	}
	return nil
}

// inTime reads from the wire as long as the next bytes come in time.
type inTime struct{ *wire }

func (r inTime) Read(p []byte) (int, error) {
	if err := r.raw.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return 0, err
	}
	return r.raw.Read(p)
}
