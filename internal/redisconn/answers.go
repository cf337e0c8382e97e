package redisconn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unsafe"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/headers"
)

// Question is a set of commands that change nothing, so they may be sent again. Each reply is an array of texts, like the reply of
// HMGET. Only a command that Brief selects may have any reply.
type Question struct {
	Commands int
	// Write appends a command, see [AppendCommand].
	Write func(buf []byte, command int) []byte
	// Nested means that the elements of an array may be arrays themselves, as in the reply of XRANGE.
	Nested bool
	// Brief, if set, selects the commands that may have any reply. Of such a reply only the short texts are kept.
	Brief func(command int) bool
	// Read gets the replies. It must not use them after it has returned.
	Read func(*Answers) error
}

// Answers are the replies to a [Question].
type Answers struct {
	All     []byte  // the texts, one after the other
	Sizes   []int   // the size of each text; -1 means no text. For a nested array see [Nested]
	Replies []Reply // one reply for each command
	Briefs  []any   // the brief replies, in the order of their commands
}

// Reply describes the reply to one command, which is an array or a refusal.
type Reply struct {
	Elements int
	Sizes    int // the number of entries in Answers.Sizes for these elements, and for the elements of nested arrays
	Refusal  redis.Error
}

// Nested returns the number of elements of a nested array. The argument size is the entry of this array in Answers.Sizes. An entry
// below -1 stands for an array, whose elements follow. The entry -1 stands for a missing text; any other entry is the size of a
// text.
func Nested(size int) int { return -2 - size }

// Take returns the texts in the field All as one string, which stays valid. It does not copy a large text, because the next question
// gets a new buffer (see forget).
func (t *Answers) Take() string {
	if cap(t.All) <= wireKeeps {
		return string(t.All)
	}
	return unsafe.String(&t.All[0], len(t.All)) //nolint:gosec // nothing writes there any more
}

// readAll reads the replies to a question.
func (t *Answers) readAll(r *bufio.Reader, q *Question) error {
	t.All, t.Sizes, t.Replies, t.Briefs = t.All[:0], t.Sizes[:0], t.Replies[:0], nil
	for i := range q.Commands {
		if q.Brief == nil || !q.Brief(i) {
			if err := t.readReply(r, q.Nested); err != nil {
				return err
			}
			continue
		}
		reply, err := readBrief(r)
		if err != nil {
			return err
		}
		refusal, _ := reply.(redis.Error)
		t.Replies, t.Briefs = append(t.Replies, Reply{Refusal: refusal}), append(t.Briefs, reply)
	}
	return nil
}

func (t *Answers) readReply(r *bufio.Reader, nested bool) error {
	n, err := readArray(r)
	refusal, refused := err.(redis.Error) //nolint:errorlint // it is never wrapped
	if err != nil && !refused {
		return err
	}
	before := len(t.Sizes)
	err = t.readElements(r, n, nested)
	t.Replies = append(t.Replies, Reply{Elements: n, Sizes: len(t.Sizes) - before, Refusal: refusal})
	return err
}

// readArray reads the first line of an array, and returns the number of its elements. If the server has sent an error reply instead
// of an array, readArray returns it as a redis.Error.
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
	return n, headers.Total(n, 0)
}

// readElements reads n elements. If nested is true, these elements may be arrays, and readElements also reads the elements of these
// arrays.
func (t *Answers) readElements(r *bufio.Reader, n int, nested bool) (err error) {
	for n > 0 {
		buffered, _ := r.Peek(r.Buffered()) // without waiting
		used, more := t.readBuffered(buffered, n, nested)
		_, _ = r.Discard(used) // Peek has returned that many
		if err := headers.Total(len(t.Sizes)+more, len(t.All)); err != nil {
			return err
		}
		if n = more; n == 0 {
			break
		}
		if more, err = t.readElement(r, nested); err != nil {
			return err
		}
		n += more - 1
	}
	return nil
}

// readBuffered reads up to n elements that are complete in the buffer. It stops before an element that has a rare form. It returns
// the number of bytes read and the number of elements that are still missing.
func (t *Answers) readBuffered(buf []byte, n int, nested bool) (used, left int) {
	for ; n > 0; n-- {
		kind, size, begin := header(buf[used:])
		end := used + begin + size + 2
		switch {
		case kind == '*' && nested:
			t.Sizes = append(t.Sizes, Nested(size))
			n += size
			used += begin
			continue
		case kind != '$' || end > len(buf):
			return used, n
		}
		t.All = append(t.All, buf[used+begin:end-2]...)
		t.Sizes = append(t.Sizes, size)
		used = end
	}
	return used, 0
}

// header reads the line that begins an element. The result kind is 0 if the line is incomplete or has a rare form.
func header(buf []byte) (kind byte, size, length int) {
	const longest = 9 // more digits are rare
	for i := 1; i < min(len(buf)-1, longest); i++ {
		switch digit := buf[i] - '0'; {
		case digit <= 9:
			size = 10*size + int(digit)
		case i > 1 && buf[i] == '\r' && buf[i+1] == '\n':
			return buf[0], size, i + 2
		default:
			return 0, 0, 0
		}
	}
	return 0, 0, 0
}

// readElement reads one element, and waits for it if it is not in the buffer yet. The result follow is the number of elements that follow
// if the element is an array.
func (t *Answers) readElement(r *bufio.Reader, nested bool) (follow int, err error) {
	kind, rest, err := readLine(r)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(rest))
	switch {
	case err == nil && kind == '*' && nested && n >= 0:
		t.Sizes = append(t.Sizes, Nested(n))
		return n, headers.Total(n, 0)
	case err != nil || kind != '$' || n < -1:
		return 0, fmt.Errorf("%w: %q", errNotTexts, string(kind)+string(rest))
	}
	t.Sizes = append(t.Sizes, n)
	if n < 0 {
		return 0, nil
	}
	if err := headers.Text(n); err != nil {
		return 0, err
	}
	return 0, t.readText(r, n)
}

// sureText is the size of the largest text that gets all of its memory when its first bytes arrive. For a longer text, the memory is
// doubled whenever the received bytes fill it, so that a false size costs little memory.
const sureText = 8 << 20

// readText reads a text of n bytes.
func (t *Answers) readText(r *bufio.Reader, n int) error {
	for left := n; left > 0; {
		piece, err := r.Peek(min(left, wireReads))
		if n > wireReads && cap(t.All)-len(t.All) < len(piece) {
			t.All = slices.Grow(t.All, min(left, max(sureText, n-left)))
		}
		t.All = append(t.All, piece...)
		if err != nil {
			return noEOF(err)
		}
		left -= len(piece)
		_, _ = r.Discard(len(piece)) // Peek has returned them
	}
	_, err := r.Discard(2) // the end of the line
	return noEOF(err)
}

// readLine reads a line and returns the first byte and the rest of the line. The rest is valid until more bytes are read.
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

// noEOF replaces io.EOF with io.ErrUnexpectedEOF, because the connection must not end before the reply.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// AppendCommand appends the beginning of a command: the number of its words, which includes the name, and the name.
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
