package follow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// These are the time limits of a stream.
const (
	ackEvery = time.Second
	// leaveAfter is how long we wait for data from a server that has asked for an acknowledgement.
	leaveAfter = time.Second
	// silence is how long a master may send nothing before we leave it. A master sends PING every 10 seconds, unless
	// repl-ping-replica-period differs, and drops its replicas after repl-timeout, 60 s.
	silence = 60 * time.Second
)

// ack does not contain our real offset: with the real offset FAILOVER would choose us as a replica that has everything, and WAIT
// would count us. It also does not contain 0, because on a server without writes a replica at offset 0 has everything. Offset 1 is
// never the offset of a replica, because the first command has 14 bytes.
var ack = []byte("*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n1\r\n")

// Position is a place between two commands of a stream, outside MULTI.
type Position struct {
	ReplID string // names the history
	Offset int64  // the number of bytes of the history before this place
	// DB is the database that is selected at this place, or AnyDB if it is unknown.
	DB int
}

// AnyDB means that the database of a command is unknown, because Redis does not repeat SELECT for a follower that continues from a
// position.
const AnyDB = -1

// Handler receives the commands of a stream. Its methods must not block, because Redis disconnects a client that reads too slowly.
type Handler interface {
	// Command is called for each command, except the commands that only control the stream: SELECT, MULTI, EXEC, PING, REPLCONF. db
	// is the database of the command, or AnyDB. args are valid until Command returns. An argument of more than 64 KiB is nil. If a
	// command is too long to be kept, args is empty.
	Command(db int, args [][]byte)
	// Reached is called before the stream waits for more bytes. All commands up to this position have been handed over.
	Reached(Position)
}

// Stream is the replication stream of one master. It is not safe for concurrent use.
type Stream struct {
	reader
	at       Position // the place after the last command
	boundary Position // the last place outside MULTI
	multi    bool
	asked    time.Time // when the server asked for an acknowledgement, if no data came since

	// The fields below describe the command that is being read.
	left    int    // the number of missing arguments; less than 0: the command has not begun
	skip    int    // missing bytes of an argument that is too long
	dropped int64  // the number of the command's bytes that are no longer in the buffer
	spans   []span // the arguments, as places after reader.kept
	over    bool   // the command is too long to be kept
	args    [][]byte
}

// span is the place of an argument in the buffer. The field from is negative if the argument was too long to be kept.
type span struct{ from, to int }

func newStream(r *reader, at Position) *Stream {
	return &Stream{reader: *r, at: at, boundary: at, left: -1}
}

// Position returns the last place where the stream may be resumed.
func (s *Stream) Position() Position { return s.boundary }

// Offset returns the offset after the command that is being handed over to the handler. Only the handler may call it.
func (s *Stream) Offset() int64 { return s.at.Offset }

// Close ends the stream. It may be called at any time, and more than once.
func (s *Stream) Close() error {
	if err := s.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Follow passes the commands to the handler h until ctx ends or the stream breaks. Then it closes the stream.
func (s *Stream) Follow(ctx context.Context, h Handler) error {
	following, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(following, func() { _ = s.Close() })
	var acks sync.WaitGroup
	acks.Go(func() { s.acknowledge(following, cancel) })
	defer func() { // even if a handler panics
		cancel(nil)
		_ = s.Close()
		stop()
		acks.Wait()
	}()
	err := s.follow(h)
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	var unsaid ackError
	if errors.Is(err, net.ErrClosed) && errors.As(context.Cause(following), &unsaid) {
		return fmt.Errorf("the replication stream broke: %w", unsaid)
	}
	return err
}

// ackError means that an acknowledgement could not be sent.
type ackError struct{ error }

func (e ackError) Error() string { return "no acknowledgement could be sent: " + e.error.Error() }
func (e ackError) Unwrap() error { return e.error }

// acknowledge sends acknowledgements regularly, so that the server keeps the connection: see ack. If it cannot send one, it ends the
// stream.
func (s *Stream) acknowledge(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(ackEvery)
	defer tick.Stop()
	for {
		_ = s.conn.SetWriteDeadline(time.Now().Add(silence))
		if _, err := s.conn.Write(ack); err != nil {
			end(ackError{err})
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Stream) follow(h Handler) error {
	for {
		if err := s.handOver(h); err != nil {
			return err
		}
		h.Reached(s.boundary)
		s.shrinkBetween()
		deadline := time.Now().Add(silence)
		if !s.asked.IsZero() {
			deadline = s.asked.Add(leaveAfter)
		}
		err := s.receive(deadline)
		switch {
		case err == nil:
		case isTimeout(err) && !s.asked.IsZero():
			return ErrLeft
		case isTimeout(err):
			return fmt.Errorf("%w for %s: it hangs, or repl-ping-replica-period is longer", ErrSilent, silence)
		default:
			return fmt.Errorf("the replication stream broke: %w", err)
		}
	}
}

// receive waits for more bytes of the stream, as fill does. If the command that is being received has become too long, receive stops
// keeping its bytes. It also drops the bytes of an argument that must be skipped.
func (s *Stream) receive(deadline time.Time) error {
	if s.left >= 0 && s.mustGrow() && 2*len(s.buf) > most { // the command is not kept any longer
		s.over = true
		s.dropped += int64(s.r - s.kept)
		s.kept, s.spans = s.r, s.spans[:0]
	}
	if err := s.fill(deadline); err != nil {
		return err
	}
	if s.skip > 0 {
		n := min(s.skip, s.w-s.r)
		s.w = s.r + copy(s.buf[s.r:], s.buf[s.r+n:s.w])
		s.skip -= n
		s.dropped += int64(n)
	}
	return nil
}

// handOver passes every command that has been received completely to the handler h.
func (s *Stream) handOver(h Handler) error {
	for {
		whole, err := s.next()
		if err != nil || !whole {
			return err
		}
		s.at.Offset += int64(s.r-s.kept) + s.dropped
		s.collect()
		if !s.orders() {
			s.asked = time.Time{}
			h.Command(s.at.DB, s.args)
		}
		s.kept, s.left, s.dropped, s.over = s.r, -1, 0, false
		if !s.multi {
			s.boundary = s.at
		}
	}
}

// next reads on to the end of a command. It returns false if the end of the command has not been received yet.
func (s *Stream) next() (whole bool, err error) {
	if s.skip > 0 {
		return false, nil
	}
	if s.left < 0 {
		n, next := number(s.buf[:s.w], s.r, '*')
		if next <= 0 || n == 0 {
			return false, s.garbled(next < 0 || next > 0)
		}
		s.r, s.left, s.spans = next, n, s.spans[:0]
	}
	for ; s.left > 0; s.left-- {
		n, next := number(s.buf[:s.w], s.r, '$')
		if next <= 0 {
			return false, s.garbled(next < 0)
		}
		end := next + n
		switch {
		case n > longest:
			s.spans = append(s.spans, span{-1, -1})
			s.skipTo(next, n+2)
			if s.skip > 0 {
				s.left-- // the argument is complete, except for its end
				return false, nil
			}
			continue
		case end+2 > s.w:
			return false, nil
		case s.buf[end] != '\r' || s.buf[end+1] != '\n':
			return false, s.garbled(true)
		}
		if !s.over {
			s.spans = append(s.spans, span{next - s.kept, end - s.kept})
		}
		s.r = end + 2
		if s.over {
			s.dropped += int64(s.r - s.kept)
			s.kept = s.r
		}
	}
	return true, nil
}

// skipTo skips n bytes that begin at the position from. The field skip is the number of these bytes that were not received yet.
func (s *Stream) skipTo(from, n int) {
	s.r = from
	there := min(n, s.w-from)
	if there == n {
		s.r += n
		return
	}
	s.w -= there // no other byte is in the buffer after these bytes
	s.dropped += int64(there)
	s.skip = n - there
}

func (s *Stream) garbled(yes bool) error {
	if !yes {
		return nil
	}
	return fmt.Errorf("%w, behind offset %d: %q", ErrGarbled, s.at.Offset, s.buf[s.r:min(s.w, s.r+32)])
}

// collect builds the arguments of a command from their places in the buffer.
func (s *Stream) collect() {
	s.args = s.args[:0]
	if s.over {
		return
	}
	for _, at := range s.spans {
		if at.from < 0 {
			s.args = append(s.args, nil)
			continue
		}
		s.args = append(s.args, s.buf[s.kept+at.from:s.kept+at.to])
	}
}

// orders applies a command that only controls the stream. It returns false for any other command.
func (s *Stream) orders() bool {
	if len(s.args) == 0 {
		return false
	}
	switch name := s.args[0]; len(name) {
	case 4:
		switch {
		case same(name, "ping"):
			return true
		case same(name, "exec"):
			s.multi = false
			return true
		}
	case 5:
		if same(name, "multi") {
			s.multi = true
			return true
		}
	case 6:
		if same(name, "select") && len(s.args) == 2 {
			db, err := strconv.Atoi(string(s.args[1]))
			if err != nil || db < 0 {
				db = AnyDB
			}
			s.at.DB = db
			return true
		}
	case 8:
		if same(name, "replconf") {
			if len(s.args) > 1 && same(s.args[1], "getack") && s.asked.IsZero() {
				s.asked = time.Now()
			}
			return true
		}
	}
	return false
}

// shrinkBetween frees the memory that a long command has used.
func (s *Stream) shrinkBetween() {
	if s.left >= 0 {
		return
	}
	s.shrink()
	if cap(s.args) > longest {
		s.args, s.spans = nil, nil
	}
}

// number reads the number after a mark, as in "$12\r\n". The argument at is the position of the mark. The result next is the
// position after the number. It is 0 if the number is incomplete, and negative if the text is no number.
func number(buf []byte, at int, mark byte) (n, next int) {
	if at >= len(buf) {
		return 0, 0
	}
	if buf[at] != mark {
		return 0, -1
	}
	for i := at + 1; i < len(buf); i++ {
		switch c := buf[i]; {
		case '0' <= c && c <= '9' && n < 1<<40:
			n = n*10 + int(c-'0')
		case c == '\r' && i > at+1:
			if i+1 == len(buf) {
				return 0, 0
			}
			if buf[i+1] != '\n' {
				return 0, -1
			}
			return n, i + 2
		default:
			return 0, -1
		}
	}
	return 0, 0
}

// same reports whether name equals small. The argument small is in lower case; the case of name does not matter.
func same(name []byte, small string) bool {
	if len(name) != len(small) {
		return false
	}
	for i := range len(small) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != small[i] {
			return false
		}
	}
	return true
}
