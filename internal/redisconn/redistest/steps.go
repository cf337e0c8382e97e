// Package redistest lets a test stop a user of Redis before any request and after any reply. It wraps connections, and the user does not
// notice this.
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // Redis knows scripts by it
	"encoding/hex"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Before returns the step before a request is sent, and [After] returns the step after its reply. The argument name is the command,
// or the file name of the script without ".lua". A request of several commands has the name of the first command. A replication
// stream has no steps.
func Before(name string) string { return "before " + name }

// After returns the step when the reply has arrived, but the program has not read the reply yet.
func After(name string) string { return "after " + name }

// Dial returns a dial function for redisconn.Options. Its connections call the function observe at every step, also concurrently. If
// that function returns an error, the connection breaks, and its user gets this error. Authentication has no steps.
func Dial(observe func(step string) error) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, observe: observe, asking: true}, nil
	}
}

// noSteps lists the commands that prepare a connection. These commands have no steps.
var noSteps = []string{"AUTH", "CLIENT", "HELLO", "PING", "SELECT"}

// conn is a connection whose requests and replies are observed. Only one goroutine at a time may write requests and read replies, as
// with any connection to Redis.
type conn struct {
	net.Conn
	observe  func(step string) error
	requests requests
	replies  replies
	groups   []group       // groups that are not answered yet
	asking   bool          // the next command that is written starts a group
	again    bool          // the server did not know the script, and now gets its text
	patience time.Duration // time limit of a Write
	failed   error
	// The field stream is set after PSYNC was sent, because the bytes that arrive then are not replies to commands. The field came
	// is set after the first bytes of the stream.
	stream atomic.Bool
	came   bool
}

// group contains commands that were sent together.
type group struct {
	name string
	left int // number of replies that are missing
}

// SetWriteDeadline implements net.Conn. The time that the observer of a step takes does not count.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.patience = 0
	if !t.IsZero() {
		c.patience = time.Until(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. It also returns the error of a failed step. Otherwise a caller that sets a deadline before the next
// Read would miss that error, because the Read that failed also returned bytes.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.failed != nil {
		return c.failed
	}
	return c.Conn.SetReadDeadline(t)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.stream.Load() { // an acknowledgement; another goroutine may read at the same time
		return c.Conn.Write(p)
	}
	if c.failed != nil {
		return 0, c.failed
	}
	for _, name := range c.requests.read(p) {
		if !c.asking {
			c.groups[len(c.groups)-1].left++
			continue
		}
		c.asking = false
		c.groups = append(c.groups, group{name, 1})
		if c.again {
			c.again = false
			continue
		}
		if err := c.step(Before(name), name); err != nil {
			return 0, err
		}
		c.stream.Store(name == "PSYNC")
	}
	if c.patience > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	n, err := c.Conn.Read(p)
	if c.stream.Load() {
		if c.came || n == 0 {
			return n, err
		}
		c.came = true
		return n, cmp.Or(c.step(After("PSYNC"), "PSYNC"), err)
	}
	c.asking = true
	for _, unknown := range c.replies.read(p[:n]) {
		if len(c.groups) == 0 {
			continue // a message for a subscriber, not the reply to a request
		}
		g := &c.groups[0]
		if g.left--; g.left > 0 {
			continue
		}
		name := g.name
		c.groups = c.groups[1:]
		if c.again = unknown; c.again {
			continue
		}
		if err := c.step(After(name), name); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (c *conn) step(step, name string) error {
	if slices.Contains(noSteps, name) {
		return nil
	}
	if err := c.observe(step); err != nil {
		c.failed = err
		_ = c.Conn.Close() // the user of the connection also closes it
		return err
	}
	return nil
}

// requests parses a stream of commands.
type requests struct {
	line  []byte
	skip  int    // bytes of the present word that are missing, including its line end
	word  []byte // the first or second word of a command
	at    int    // index of the present word
	first string
}

// read parses the next bytes of the stream, and returns the names of the commands that these bytes complete.
func (r *requests) read(p []byte) (names []string) {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(p))
			if r.at < 2 {
				r.word = append(r.word, p[:n]...)
			}
			p, r.skip = p[n:], r.skip-n
			if r.skip == 0 {
				if name := r.end(); name != "" {
					names = append(names, name)
				}
			}
			continue
		}
		var line []byte
		if line, p = cutLine(&r.line, p); line == nil {
			return names
		}
		switch n := number(line[1:]); line[0] {
		case '*':
			r.at, r.first = 0, ""
		case '$':
			r.skip, r.word = n+2, r.word[:0]
		}
	}
	return names
}

// end handles the end of a word. If the word completes the name of the command, end returns the name.
func (r *requests) end() (name string) {
	text := strings.TrimSuffix(string(r.word), "\r\n")
	script := r.first == "EVAL" || r.first == "EVALSHA"
	switch {
	case r.at == 0:
		r.first = strings.ToUpper(text)
		if r.first != "EVAL" && r.first != "EVALSHA" {
			name = r.first
		}
	case r.at == 1 && script:
		name = scriptName(r.first, text)
	}
	r.at++
	r.word = r.word[:0]
	return name
}

// replies parses a stream of replies.
type replies struct {
	line []byte
	need int  // number of values of this reply that are missing
	skip int  // number of bytes of a text that are missing
	no   bool // the reply says that the script is not known
}

// read parses the next bytes of the stream. It returns one entry for every reply that these bytes complete. The entry is true if the
// reply says that the script is not known.
func (r *replies) read(p []byte) (complete []bool) {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(p))
			if p, r.skip = p[n:], r.skip-n; r.skip == 0 && r.need == 0 {
				complete = append(complete, r.no)
			}
			continue
		}
		var line []byte
		if line, p = cutLine(&r.line, p); line == nil {
			return complete
		}
		if r.need == 0 { // a new reply begins here
			r.need, r.no = 1, bytes.HasPrefix(line, []byte("-NOSCRIPT"))
		}
		r.need--
		switch n := number(line[1:]); line[0] {
		case '*', '~', '>':
			r.need += max(0, n)
		case '%':
			r.need += max(0, 2*n)
		case '$', '=', '!':
			if n >= 0 {
				r.skip = n + 2
			}
		}
		if r.need == 0 && r.skip == 0 {
			complete = append(complete, r.no)
		}
	}
	return complete
}

// cutLine cuts the first line from p. The argument begun may contain the beginning of the line. While the end of the line is
// missing, cutLine returns nil and keeps all bytes in this argument.
func cutLine(begun *[]byte, p []byte) (line, rest []byte) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		*begun = append(*begun, p...)
		return nil, nil
	}
	line = append(*begun, p[:i+1]...)
	*begun = nil
	return bytes.TrimRight(line, "\r\n"), p[i+1:]
}

// number reads a length. It returns 0 if the text is no number.
func number(text []byte) int {
	n, sign := 0, 1
	for i, c := range text {
		switch {
		case i == 0 && c == '-':
			sign = -1
		case c < '0' || c > '9':
			return 0
		default:
			n = 10*n + int(c-'0')
		}
	}
	return sign * n
}

// scriptName returns the name of the file that contains a script, or the name of the command if there is no such file.
func scriptName(command, text string) string {
	if command == "EVAL" {
		text = hash([]byte(text))
	}
	if name := scripts()[text]; name != "" {
		return name
	}
	return command
}

func hash(script []byte) string {
	sum := sha1.Sum(script) //nolint:gosec // Redis knows scripts by it
	return hex.EncodeToString(sum[:])
}

// scripts maps the hashes of the scripts to the names of the module's Lua files. It searches for go.mod in the working directory and
// in the directories above it, because a test runs in the directory of its package.
var scripts = sync.OnceValue(func() map[string]string {
	root, err := os.Getwd()
	for err == nil && root != "/" {
		if _, gone := os.Stat(filepath.Join(root, "go.mod")); gone == nil {
			break
		}
		root = filepath.Dir(root)
	}
	names := map[string]string{}
	_ = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".lua" {
			return err
		}
		text, err := os.ReadFile(path)
		names[hash(text)] = strings.TrimSuffix(e.Name(), ".lua")
		return err
	})
	return names
})
