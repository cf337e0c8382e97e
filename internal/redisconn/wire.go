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

// Conn is a connection to Redis. Beside all that redigo does it can ask many commands at
// once and read their texts into one buffer, see [Question], and scan a key. redigo makes
// several objects of every text; for rows by the hundred thousand that is most of what
// baton spends.
type Conn interface {
	redis.ConnWithContext
	redis.ConnWithTimeout

	// Ask asks a question. Nothing else may be under way on the connection. Its error is
	// also that of what was read.
	Ask(ctx context.Context, q *Question) error
	// ScanKey goes on with a pass over a key at cursor, "0" at the beginning, until it is
	// over or there is enough, and returns where it would go on; that is "0" when it is over.
	// What each is given is valid until the last element of the reply has been handed over;
	// HSCAN and ZSCAN reply with pairs.
	// pace says how much of the key a command may visit, and learns from the replies.
	ScanKey(ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool,
		each func(element []byte)) (next string, err error)
	// CutOff says that the connection is about to be closed under whoever blocks on it, as
	// it is needed no more. That says nothing against its siblings: if it did, two that
	// wait would take each other down again and again.
	CutOff()
}

// wire is a connection of redigo's, which also reads and writes by itself.
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

// redigo is what every connection of that library can.
type redigo interface {
	redis.ConnWithContext
	redis.ConnWithTimeout
}

func newWire(c redis.Conn, raw net.Conn, timeout time.Duration) *wire {
	return &wire{redigo: c.(redigo), raw: raw, timeout: timeout}
}

// The sizes of a wire's buffers: of the one it reads through, and of those that it keeps
// for the next question.
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

// during does what uses the wire by itself. If that fails, or ctx ends, the connection is
// of no use any more; except after a refusal.
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
	_ = w.raw.Close() // whatever it still has to say is of no use
	return headers.At(err, w.server)
}

// forget gives up buffers that have become large.
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

// inTime reads from the wire, for as long as the next bytes come in time.
type inTime struct{ *wire }

func (r inTime) Read(p []byte) (int, error) {
	if err := r.raw.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return 0, err
	}
	return r.raw.Read(p)
}
