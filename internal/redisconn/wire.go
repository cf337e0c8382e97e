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

// Conn is a connection to Redis. In addition to redigo's methods it can scan a key, and it can send many commands together and read
// their texts into one buffer, see [Question]. redigo itself allocates several objects for every text. With hundreds of thousands of
// rows, these allocations would be most of baton's cost.
type Conn interface {
	redis.ConnWithContext
	redis.ConnWithTimeout

	// Ask asks a question. No other command may be pending on the connection. Ask also returns the error of q.Read.
	Ask(ctx context.Context, q *Question) error
	// ScanKey continues a scan of a key at the place that the argument cursor names. The cursor is "0" at the beginning. It stops
	// when the scan is over, or when the function enough returns true. It returns the next cursor, which is "0" when the scan is
	// over. It calls the function each with every element; HSCAN and ZSCAN reply with pairs of elements. An element is valid until
	// that function has received the last element of the same reply. The argument pace limits how many elements one command visits,
	// and adapts to the replies.
	ScanKey(ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool,
		each func(element []byte)) (next string, err error)
	// CutOff announces that we are going to close the connection, because its blocking command is no longer needed. Without this
	// announcement the pool would suspect the other connections to the server, and two blocked connections would end each other again and
	// again.
	CutOff()
}

// wire is a redigo connection with its socket, so that we can also read and write the socket directly.
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

// redigo lists the methods of a redigo connection that wire uses.
type redigo interface {
	redis.ConnWithContext
	redis.ConnWithTimeout
}

func newWire(c redis.Conn, raw net.Conn, timeout time.Duration) *wire {
	return &wire{redigo: c.(redigo), raw: raw, timeout: timeout}
}

// These are sizes in bytes. wireReads is the size of the buffer for reading. wireKeeps is the size of the largest buffers that are
// kept for the next question.
const (
	wireReads = 64 << 10
	wireKeeps = 1 << 20
)

var (
	errBrokenWire = errors.New("this connection broke in the middle of a reply")
	errNotTexts   = errors.New("unexpected reply from Redis: not a list of texts")
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

// during runs the function do, which uses the socket directly. If that function fails or ctx ends, the connection is unusable. After
// a refusal by the server it stays usable.
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

// forget frees buffers that have become too large.
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

// send sends the bytes in w.request.
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
		return fmt.Errorf("%w: more replies than commands", errNotTexts)
	}
	return nil
}

// inTime reads from the socket. Each call of Read fails if no bytes arrive within the time limit.
type inTime struct{ *wire }

func (r inTime) Read(p []byte) (int, error) {
	if err := r.raw.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return 0, err
	}
	return r.raw.Read(p)
}
