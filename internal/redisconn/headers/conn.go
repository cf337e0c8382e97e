package headers

import (
	"bytes"
	"net"
)

const (
	// holdAbove is the size in bytes above which a text is held back until it has arrived completely.
	holdAbove = 1 << 20
	// piece is the size of each buffer that holds such a text.
	piece = 256 << 10
	// readMost is the number of bytes to read at once while a header may follow. It is less than holdAbove, so that the end of a long text
	// never comes in the same read as its header.
	readMost = 64 << 10
	// keptOfLine is the number of bytes that are kept of a line. A header is shorter.
	keptOfLine = 64
)

// Conn is a connection for the client library. If a reply exceeds a limit, Read returns an error before the
// library sees that reply. Only one goroutine may call Read at a time.
type Conn struct {
	net.Conn
	server string
	err    error // the error of a refused reply; every later Read also returns it

	line     []byte // the beginning of the line that is being read
	length   int    // the length of that line
	skip     int    // the number of missing bytes of a text and of its line end
	left     []int  // the number of missing elements of each open array
	elements int    // of this reply
	bytes    int    // of this reply
	foreign  bool   // the server sent something other than a reply, which the library itself reports

	held [][]byte // the pieces of a long text, with the end of its header
	wait int      // the number of missing bytes of that text
}

// Guard limits the replies that arrive over c. The argument server is the server's name in messages.
func Guard(c net.Conn, server string) *Conn { return &Conn{Conn: c, server: server} }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	for c.wait > 0 {
		if err := c.hold(); err != nil {
			return 0, err
		}
	}
	if len(c.held) > 0 {
		return c.release(p), nil
	}
	if len(p) > readMost && c.skip < len(p) {
		p = p[:readMost]
	}
	n, err := c.Conn.Read(p)
	from, refused := c.scan(p[:n])
	switch {
	case refused != nil:
		c.err = refused
		return 0, refused
	case from < 0:
		return n, err
	}
	first := append(make([]byte, 0, piece), p[from:n]...)
	c.held, c.wait, c.skip = [][]byte{first}, c.skip-(n-from-1), 0
	if from == 0 && err == nil {
		return c.Read(p)
	}
	return from, err
}

// hold reads the next piece of a long text. Conn holds back such a text until all of it has arrived.
func (c *Conn) hold() error {
	last := len(c.held) - 1
	if len(c.held[last]) == cap(c.held[last]) {
		c.held, last = append(c.held, make([]byte, 0, min(piece, c.wait))), last+1
	}
	into := c.held[last]
	room := into[len(into):min(cap(into), len(into)+c.wait)]
	n, err := c.Conn.Read(room)
	c.held[last], c.wait = into[:len(into)+n], c.wait-n
	if n > 0 {
		return nil
	}
	return err
}

// release returns the next bytes of a text that was held back.
func (c *Conn) release(p []byte) int {
	n := copy(p, c.held[0])
	if c.held[0] = c.held[0][n:]; len(c.held[0]) == 0 {
		c.held[0] = nil
		c.held = c.held[1:]
	}
	return n
}

// scan parses the replies in p. The result from is the position where the header of a long text ends. From this position on, the
// bytes must be held back. The result is negative if there is no long text.
func (c *Conn) scan(p []byte) (from int, err error) {
	for at := 0; at < len(p) && !c.foreign; {
		if c.skip > 0 {
			n := min(c.skip, len(p)-at)
			c.skip, at = c.skip-n, at+n
			continue
		}
		end := bytes.IndexByte(p[at:], '\n')
		part := p[at:]
		if end >= 0 {
			part = part[:end]
		}
		line := part
		if c.length > 0 || end < 0 { // the line arrived in pieces
			c.line = append(c.line, part[:min(len(part), keptOfLine-len(c.line))]...)
			line = c.line
		}
		if c.length += len(part); c.length > MostLine {
			return -1, At(&LimitError{What: "a line without an end", Limit: "64 KiB"}, c.server)
		}
		if end < 0 {
			break
		}
		at += end + 1
		if err := c.header(line); err != nil {
			return -1, At(err, c.server)
		}
		c.line, c.length = c.line[:0], 0
		if c.skip > holdAbove {
			return at - 1, nil
		}
	}
	return -1, nil
}

// header handles a complete line, which is a short reply or the header of a text or an array.
func (c *Conn) header(line []byte) error {
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if len(line) == 0 {
		c.foreign = true
		return nil
	}
	switch kind := line[0]; kind {
	case '+', '-', ':':
	case '$', '*':
		n, ok := Size(line[1:])
		switch {
		case !ok:
			c.foreign = true
			return nil
		case kind == '*' && n > 0:
			return c.open(n)
		case kind == '$' && n >= 0:
			if err := c.text(n); err != nil {
				return err
			}
		}
	default:
		c.foreign = true
		return nil
	}
	c.close()
	return nil
}

// open records the beginning of an array of n elements.
func (c *Conn) open(n int) error {
	if n <= MostElements {
		n += c.elements
	}
	if err := Total(n, c.bytes); err != nil {
		return err
	}
	c.left, c.elements = append(c.left, n-c.elements), n
	return Depth(len(c.left))
}

// text records the beginning of a text of n bytes.
func (c *Conn) text(n int) error {
	if err := Text(n); err != nil {
		return err
	}
	c.skip, c.bytes = n+2, c.bytes+n
	return Total(c.elements, c.bytes)
}

// close records the end of an element. The last element of an array also ends the array.
func (c *Conn) close() {
	for i := len(c.left) - 1; i >= 0; i-- {
		if c.left[i]--; c.left[i] > 0 {
			c.left = c.left[:i+1]
			return
		}
	}
	c.left, c.elements, c.bytes = c.left[:0], 0, 0
}
