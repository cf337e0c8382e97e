package follow

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// These are sizes in bytes. buffered is the first size of a buffer. longest limits the arguments of commands: a longer argument is not
// kept. most limits the buffer: a command that needs a larger buffer is also not kept.
const (
	buffered = 256 << 10
	longest  = 64 << 10
	most     = 32 << 20
)

// reader receives the bytes of a connection. Its buffer grows until the command that is being received fits into it.
type reader struct {
	conn net.Conn
	buf  []byte
	r, w int // buf[r:w] has been received and not been used
	kept int // buf[kept:r] is still needed; kept equals r outside of a command
}

func newReader(conn net.Conn) *reader { return &reader{conn: conn, buf: make([]byte, buffered)} }

// fill waits for more bytes, at most until the deadline. It may move the kept bytes inside the buffer.
func (b *reader) fill(deadline time.Time) error {
	if b.w == len(b.buf) {
		b.makeRoom()
	}
	if err := b.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	n, err := b.conn.Read(b.buf[b.w:])
	b.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// makeRoom moves the kept bytes to the beginning of the buffer, or to a larger buffer.
func (b *reader) makeRoom() {
	to := b.buf
	if b.mustGrow() {
		to = make([]byte, 2*len(b.buf))
	}
	n := copy(to, b.buf[b.kept:b.w])
	b.buf, b.r, b.w, b.kept = to, b.r-b.kept, n, 0
}

// mustGrow reports whether the buffer is full, and more than half of its bytes must be kept.
func (b *reader) mustGrow() bool { return b.w == len(b.buf) && b.w-b.kept > len(b.buf)/2 }

// shrink replaces a buffer that grew for one large command with a small buffer. The old buffer must not contain kept bytes.
func (b *reader) shrink() {
	if len(b.buf) <= 4*buffered || b.w-b.r > buffered/2 {
		return
	}
	to := make([]byte, buffered)
	b.w = copy(to, b.buf[b.r:b.w])
	b.buf, b.r, b.kept = to, 0, 0
}

// line returns the next line, without its end. The line is valid until more bytes are received. Only the handshake uses it.
func (b *reader) line(wait time.Duration) ([]byte, error) {
	for at := b.r; ; {
		for ; at < b.w; at++ {
			if b.buf[at] != '\n' {
				continue
			}
			text := b.buf[b.r:at]
			if n := len(text); n > 0 && text[n-1] == '\r' {
				text = text[:n-1]
			}
			b.r, b.kept = at+1, at+1
			return text, nil
		}
		if at-b.r > longest {
			return nil, fmt.Errorf("%w: a line without an end", ErrGarbled)
		}
		moved := b.r
		if err := b.fill(deadlineIn(wait)); err != nil {
			return nil, err
		}
		at -= moved - b.r
	}
}

// reply returns the next reply: a text, a number or a bulk string. A refusal is a redis.Error. The server sends empty lines before the
// reply while it is busy.
func (b *reader) reply(wait time.Duration) (string, error) {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = b.line(wait); err != nil {
			return "", err
		}
	}
	text := string(line[1:])
	switch line[0] {
	case '+', ':':
		return text, nil
	case '-':
		return "", redis.Error(text)
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > most {
			break
		}
		return b.bulk(n, wait)
	}
	return "", fmt.Errorf("%w: reply %q: is it a Redis?", ErrGarbled, line)
}

// bulk receives a text of n bytes and its line end. Its memory grows with the received bytes.
func (b *reader) bulk(n int, wait time.Duration) (string, error) {
	var text []byte
	for piece := make([]byte, min(n+2, longest)); len(text) < n+2; {
		piece = piece[:min(len(piece), n+2-len(text))]
		if err := b.read(piece, wait); err != nil {
			return "", err
		}
		text = append(text, piece...)
	}
	return string(text[:n]), nil
}

// read fills the slice into with received bytes.
func (b *reader) read(into []byte, wait time.Duration) error {
	for len(into) > 0 {
		if b.r == b.w {
			if err := b.fill(deadlineIn(wait)); err != nil {
				return err
			}
		}
		n := copy(into, b.buf[b.r:b.w])
		b.r, b.kept, into = b.r+n, b.r+n, into[n:]
	}
	return nil
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func deadlineIn(wait time.Duration) time.Time { return time.Now().Add(wait) }
