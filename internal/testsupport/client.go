package testsupport

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Client is a program that uses the Redis of a test, such as a producer. If a command fails, the test fails.
type Client struct {
	T    testing.TB
	Conn redis.Conn
}

// Client returns a new Client with its own connection.
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

// Send sends a command, and the next Do reads the reply to the command.
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

// Long is true if BATON_TEST_LONG is set. It lets tests make more random draws.
var Long = os.Getenv("BATON_TEST_LONG") != ""

// Often returns how many random draws a test makes: n if Long is true, otherwise a quarter of n.
func Often(n int) int {
	if Long {
		return n
	}
	return max(1, n/4)
}

// Calls returns how often the server has run each command so far, including commands in scripts. It does not count INFO, and does not reset
// the server's statistics.
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

// CallsOf returns how often the server ran each command while the function do ran.
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
