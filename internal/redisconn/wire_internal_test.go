package redisconn

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// hmget asks for fields of keys, and writes the replies down: "-" for no text.
func hmget(ctx context.Context, c interface {
	Ask(ctx context.Context, q *Question) error
}, keys []string, fields ...string) (got []string, err error) {
	err = c.Ask(ctx, &Question{
		Commands: len(keys),
		Write: func(buf []byte) []byte {
			for _, key := range keys {
				buf = AppendWord(AppendCommand(buf, 2+len(fields), "HMGET"), key)
				for _, f := range fields {
					buf = AppendWord(buf, f)
				}
			}
			return buf
		},
		Read: func(a Answers) error {
			all, sizes := string(a.All), a.Sizes
			for _, r := range a.Replies {
				if r.Refusal != "" {
					got = append(got, Code(r.Refusal))
				}
				for _, n := range sizes[:r.Texts] {
					if n < 0 {
						got = append(got, "-")
						continue
					}
					got, all = append(got, all[:n]), all[n:]
				}
				sizes = sizes[r.Texts:]
			}
			return nil
		},
	})
	return got, err
}

func TestTextsOfAnySizeAreReadAsTheyAre(t *testing.T) {
	g := newRig(t)
	c, err := g.store.Conn(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("0123456789\r\n", 50_000) // longer than the buffer, and than what is kept
	g.Do("HSET", "k", "a", "", "b", "\r\n$5\r\n*1\r\n\x00\xff", "c", long)
	g.Do("SET", "text", "x")
	for range 3 {
		got, err := hmget(t.Context(), c, []string{"k", "text", "none", "k"}, "a", "no", "b", "c")
		want := []string{"", "-", "\r\n$5\r\n*1\r\n\x00\xff", long}
		want = slices.Concat(want, []string{"WRONGTYPE", "-", "-", "-", "-"}, want)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d texts, %v", len(got), err)
		}
		if pong, err := redis.String(c.Do("PING")); pong != "PONG" || err != nil {
			t.Fatalf("and then: %q, %v", pong, err)
		}
	}
}

// served is a wire whose other end reads what is asked and says reply.
func served(t *testing.T, reply string, then func(net.Conn)) *wire {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close() })
	go func() {
		buf := make([]byte, 1024)
		if _, err := there.Read(buf); err != nil {
			return
		}
		_, _ = io.WriteString(there, reply)
		then(there)
	}()
	return newWire(redis.NewConn(here, time.Second, time.Second), here, 300*time.Millisecond)
}

func TestConnectionIsOfNoUseAfterHalfAReply(t *testing.T) {
	hangUp := func(c net.Conn) { _ = c.Close() }
	for _, c := range []struct {
		reply string
		then  func(net.Conn)
		want  error
	}{
		{"", hangUp, io.ErrUnexpectedEOF},
		{"*2\r\n$3\r\nab", hangUp, io.ErrUnexpectedEOF},
		{"*2\r\n$3\r\nabc\r\n", hangUp, io.ErrUnexpectedEOF},
		{"*2\r\n$3\r\nabc", hangUp, io.ErrUnexpectedEOF},
		{"*1\r\n:5\r\n", hangUp, errNotTexts},
		{"+OK\r\n", hangUp, errNotTexts},
		{"*x\r\n", hangUp, errNotTexts},
		{"*1\r\n$-2\r\n", hangUp, errNotTexts},
		{"\r\n", hangUp, errNotTexts},
		{"*1\r\n$1\r\na\r\n+more\r\n", hangUp, errNotTexts},
		{"*1\r\n$9\r\na", func(net.Conn) {}, context.DeadlineExceeded}, // by the connection's own timeout
	} {
		w := served(t, c.reply, c.then)
		_, err := hmget(t.Context(), w, []string{"k"}, "f")
		timeout, ok := errors.AsType[net.Error](err)
		if errors.Is(err, io.ErrClosedPipe) {
			err = io.ErrUnexpectedEOF // a pipe says so of its other end
		}
		late := errors.Is(c.want, context.DeadlineExceeded) && ok && timeout.Timeout()
		if !errors.Is(err, c.want) && !late {
			t.Errorf("%q: %v, want %v", c.reply, err, c.want)
		}
		if w.Err() == nil {
			t.Errorf("%q: the connection would be used again", c.reply)
		}
	}
}

func TestAskingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := served(t, "*2\r\n", func(net.Conn) { cancel() })
	w.timeout = time.Minute
	if _, err := hmget(ctx, w, []string{"k"}, "f"); !errors.Is(err, context.Canceled) || w.Err() == nil {
		t.Errorf("%v, connection %v", err, w.Err())
	}
}
