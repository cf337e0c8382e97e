package testsupport

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Client is a program that uses a Redis of a test: a producer, most likely. What it asks
// must succeed.
type Client struct {
	T    testing.TB
	Conn redis.Conn
}

// Client is a new one, on a connection of its own.
func (r *Redis) Client(t testing.TB) Client { return Client{T: t, Conn: r.Conn()} }

// Do runs a command.
func (c Client) Do(name string, args ...any) any {
	c.T.Helper()
	reply, err := c.Conn.Do(name, args...)
	if err != nil {
		c.T.Fatalf("%s: %v", name, err)
	}
	return reply
}

// Send sends a command; the next Do reads its reply.
func (c Client) Send(name string, args ...any) {
	c.T.Helper()
	if err := c.Conn.Send(name, args...); err != nil {
		c.T.Fatal(err)
	}
}

// Str runs a command that answers with a text.
func (c Client) Str(name string, args ...any) string {
	c.T.Helper()
	s, err := redis.String(c.Do(name, args...), nil)
	if err != nil {
		c.T.Fatalf("%s: %v", name, err)
	}
	return s
}

// Num runs a command that answers with a number.
func (c Client) Num(name string, args ...any) int64 {
	c.T.Helper()
	n, err := redis.Int64(c.Do(name, args...), nil)
	if err != nil {
		c.T.Fatalf("%s: %v", name, err)
	}
	return n
}

// Long is set by `make test-long`: what is drawn at random is drawn more often.
var Long = os.Getenv("BATON_TEST_LONG") != ""

// Often is how often a test does what it draws at random: n times in `make test-long`, else
// a quarter of that.
func Often(n int) int {
	if Long {
		return n
	}
	return max(1, n/4)
}

// Calls is how often each command was carried out so far, those of scripts included, but for
// INFO. The server's statistics are as they were.
func (c Client) Calls() map[string]int64 {
	c.T.Helper()
	calls := map[string]int64{}
	for line := range strings.Lines(c.Str("INFO", "commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "info" {
			continue
		}
		text, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			c.T.Fatalf("INFO commandstats: %q: %v", line, err)
		}
		calls[name] = n
	}
	return calls
}

// CallsOf is how often each command was carried out while do ran.
func (c Client) CallsOf(do func()) map[string]int64 {
	c.T.Helper()
	before := c.Calls()
	do()
	after := c.Calls()
	for name, n := range before {
		if after[name] -= n; after[name] == 0 {
			delete(after, name)
		}
	}
	return after
}
