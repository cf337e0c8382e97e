package redisconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
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
	ScanKey(ctx context.Context, command, key, cursor string, enough func() bool, each func(element []byte)) (next string, err error)
	// CutOff says that the connection is about to be closed under whoever blocks on it, as
	// it is needed no more. That says nothing against its siblings: if it did, two that
	// wait would take each other down again and again.
	CutOff()
}

// wire is a connection of redigo's, which also reads and writes by itself.
type wire struct {
	redigo
	raw     net.Conn
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

// Question is commands that are answered with arrays of texts, as HMGET is.
type Question struct {
	Commands int
	Write    func(buf []byte) []byte // appends them, see [AppendCommand]
	// Read is given the replies. They are valid until it returns.
	Read func(Answers) error
}

// Answers are the replies to a [Question].
type Answers struct {
	All     []byte  // one after the other
	Sizes   []int   // of each text; -1: there is none
	Replies []Reply // one a command
}

// Reply is the reply to one command: so many texts, or a refusal.
type Reply struct {
	Texts   int
	Refusal redis.Error
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
	return q.Read(w.answers)
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
	return err
}

// forget gives up buffers that have become large.
func (w *wire) forget() {
	if cap(w.request) > wireKeeps || cap(w.answers.All) > wireKeeps {
		w.request, w.answers = nil, Answers{}
	}
}

func (w *wire) exchange(q *Question) error {
	w.request = q.Write(w.request[:0])
	if err := w.send(); err != nil {
		return err
	}
	t := &w.answers
	t.All, t.Sizes, t.Replies = t.All[:0], t.Sizes[:0], t.Replies[:0]
	for range q.Commands {
		if err := t.readReply(w.reader); err != nil {
			return err
		}
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

func (t *Answers) readReply(r *bufio.Reader) error {
	n, err := readArray(r)
	refusal, refused := err.(redis.Error) //nolint:errorlint // it is never wrapped
	if err != nil && !refused {
		return err
	}
	t.Replies = append(t.Replies, Reply{Texts: n, Refusal: refusal})
	return t.readTexts(r, n)
}

// readArray reads the beginning of an array: of how many elements it is. The error may
// be a redis.Error, which is a whole reply.
func readArray(r *bufio.Reader) (n int, err error) {
	kind, rest, err := readLine(r)
	if err != nil {
		return 0, err
	}
	if kind == '-' {
		return 0, redis.Error(rest)
	}
	n, err = strconv.Atoi(string(rest))
	if kind != '*' || err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %q", errNotTexts, string(kind)+string(rest))
	}
	return n, nil
}

func (t *Answers) readTexts(r *bufio.Reader, n int) error {
	for range n {
		if err := t.readText(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *Answers) readText(r *bufio.Reader) error {
	kind, rest, err := readLine(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(rest))
	if kind != '$' || err != nil || n < -1 {
		return fmt.Errorf("%w: %q", errNotTexts, string(kind)+string(rest))
	}
	t.Sizes = append(t.Sizes, n)
	for left := n; left > 0; {
		piece, err := r.Peek(min(left, wireReads))
		t.All = append(t.All, piece...)
		if err != nil {
			return noEOF(err)
		}
		left -= len(piece)
		_, _ = r.Discard(len(piece)) // it has been peeked at
	}
	if n < 0 {
		return nil
	}
	if _, err := r.Discard(2); err != nil { // the end of the line
		return noEOF(err)
	}
	return nil
}

// readLine reads a line's first byte and the rest of it, which is valid until the next
// reading.
func readLine(r *bufio.Reader) (kind byte, rest []byte, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, noEOF(err)
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return 0, nil, fmt.Errorf("%w: %q", errNotTexts, line)
	}
	return line[0], line[1 : len(line)-2], nil
}

// noEOF: a reply is due, so the end is not one of anything.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// AppendCommand appends the beginning of a command of so many words, name among them.
func AppendCommand(buf []byte, words int, name string) []byte {
	buf = append(buf, '*')
	buf = strconv.AppendInt(buf, int64(words), 10)
	buf = append(buf, '\r', '\n')
	return AppendWord(buf, name)
}

// AppendWord appends the next word of a command.
func AppendWord(buf []byte, word string) []byte {
	buf = append(buf, '$')
	buf = strconv.AppendInt(buf, int64(len(word)), 10)
	buf = append(buf, '\r', '\n')
	buf = append(buf, word...)
	return append(buf, '\r', '\n')
}
