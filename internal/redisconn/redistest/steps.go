// Package redistest lets a test stop a user of Redis before any request and after any reply. It
// decorates connections; the user does not notice.
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

// Before and After name the steps of a command, or of a script by its file name without .lua.
// Commands that are sent together have the steps of the first one. A replication stream has none.
func Before(name string) string { return "before " + name }

// After is the step when the reply has come and has not been seen yet.
func After(name string) string { return "after " + name }

// Dial makes connections, for redisconn.Options, that call observe at every step, also
// concurrently. An error of observe breaks the connection and is returned to its user.
// Authentication has no steps.
func Dial(observe func(step string) error) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, observe: observe, asking: true}, nil
	}
}

// noSteps are the commands by which a connection is made ready.
var noSteps = []string{"AUTH", "CLIENT", "HELLO", "PING", "SELECT"}

// conn is a connection. Requests and replies are used by one goroutine, as of any
// connection to Redis.
type conn struct {
	net.Conn
	observe  func(step string) error
	requests requests
	replies  replies
	groups   []group       // that are not answered yet
	asking   bool          // what is written now opens a group
	again    bool          // the script was not known, and is sent as a whole
	patience time.Duration // of a Write
	failed   error
	// stream: PSYNC was sent, and what comes is no reply to a command; came: it has begun.
	stream atomic.Bool
	came   bool
}

// group is commands that were sent together.
type group struct {
	name string
	left int // replies
}

// SetWriteDeadline implements net.Conn. What a step takes does not count.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.patience = 0
	if !t.IsZero() {
		c.patience = time.Until(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. A step that failed is told here, too: the bytes that came with it hide it
// from who sets a deadline before it reads on.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.failed != nil {
		return c.failed
	}
	return c.Conn.SetReadDeadline(t)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.stream.Load() { // an acknowledgement, while another goroutine reads
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
			continue // to no request: it is for a subscriber
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
		_ = c.Conn.Close() // its user closes it again
		return err
	}
	return nil
}

// requests takes a stream of commands apart.
type requests struct {
	line  []byte
	skip  int    // bytes of a word that are still to come, with its line's end
	word  []byte // of the first two of a command
	at    int    // which word
	first string
}

// read returns the names of the commands whose names are now known.
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

// end is at the end of a word, and answers the command's name if that is known by it.
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

// replies takes a stream of replies apart.
type replies struct {
	line []byte
	need int  // values that are still to come of this reply
	skip int  // bytes of a text that are still to come
	no   bool // it says that a script is not known
}

// read returns, of every reply that is complete now, whether it says that a script is not known.
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
		if r.need == 0 { // the beginning of a reply
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

// cutLine takes a line off p, of which begun may have the beginning. It is nil, and begun
// has all there is, until the line has its end.
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

// number reads a length; 0 for what is none.
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

// scriptName is the name of the file that has a script.
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

// scripts are the names of the module's scripts that are in a file of their own, by their
// hashes. A test runs in the directory of its package.
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
