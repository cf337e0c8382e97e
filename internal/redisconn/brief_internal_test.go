package redisconn

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"
)

// briefly sends commands that are given as words, and asks for brief replies to all commands except the first.
func briefly(ctx context.Context, c interface {
	Ask(ctx context.Context, q *Question) error
}, commands ...string) (all string, briefs []any, err error) {
	err = c.Ask(ctx, &Question{
		Commands: len(commands), Nested: true, Brief: func(command int) bool { return command > 0 },
		Write: func(buf []byte, i int) []byte {
			words := strings.Fields(commands[i])
			buf = AppendCommand(buf, len(words), words[0])
			for _, word := range words[1:] {
				buf = AppendWord(buf, word)
			}
			return buf
		},
		Read: func(a *Answers) error {
			all, briefs = string(a.All), a.Briefs
			return nil
		},
	})
	return all, briefs, err
}

func TestBriefRepliesHaveNoLongTexts(t *testing.T) {
	g := newRig(t)
	c, err := g.store.Conn(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	short, long := strings.Repeat("x", briefText), strings.Repeat("0123456789\r\n", 50_000)
	g.Do("RPUSH", "k", short, short+"x", long, "")
	g.Do("XADD", "s", "1-1", "v", long)
	for range 2 {
		all, briefs, err := briefly(t.Context(), c, "LRANGE k 2 2", "LRANGE k 0 -1", "MULTI", "XRANGE s - +", "LLEN k", "GET none", "GET k",
			"EXEC", "NOSUCH")
		want := []any{
			[]any{short, OmittedSize(briefText + 1), OmittedSize(len(long)), ""}, "OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED",
			[]any{[]any{[]any{"1-1", []any{"v", OmittedSize(len(long))}}}, int64(4), nil,
				redis.Error("WRONGTYPE Operation against a key holding the wrong kind of value")},
		}
		if err != nil || all != long || len(briefs) != 8 {
			t.Fatalf("%d bytes, %d brief replies, %v", len(all), len(briefs), err)
		}
		if diff := cmp.Diff(want, briefs[:7]); diff != "" {
			t.Error(diff)
		}
		if refusal, _ := briefs[7].(redis.Error); Code(refusal) != "ERR" {
			t.Errorf("a command that does not exist: %v", briefs[7])
		}
		if pong, err := redis.String(c.Do("PING")); pong != "PONG" || err != nil {
			t.Fatalf("and then: %q, %v", pong, err)
		}
	}
}

func TestConnectionIsOfNoUseAfterHalfABriefReply(t *testing.T) {
	for _, reply := range []string{"*2\r\n:1\r\n", "$200\r\nxx", "$2\r\nx", "?what\r\n", ":x\r\n", "*-1\r\n:1\r\n"} {
		w := served(t, "*0\r\n"+reply, func(net.Conn) {})
		if _, _, err := briefly(t.Context(), w, "GET k", "GET k"); err == nil || errors.As(err, new(redis.Error)) {
			t.Errorf("%q: %v", reply, err)
		}
		if w.Err() == nil {
			t.Errorf("after %q the connection is still used", reply)
		}
	}
}
