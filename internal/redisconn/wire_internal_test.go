package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// hmget asks for fields of keys, and returns the replies as one text, with "-" for a missing text.
func hmget(ctx context.Context, c interface {
	Ask(ctx context.Context, q *Question) error
}, keys []string, fields ...string) (got []string, err error) {
	err = c.Ask(ctx, &Question{
		Commands: len(keys),
		Write: func(buf []byte, i int) []byte {
			buf = AppendWord(AppendCommand(buf, 2+len(fields), "HMGET"), keys[i])
			for _, f := range fields {
				buf = AppendWord(buf, f)
			}
			return buf
		},
		Read: func(a *Answers) error {
			all, sizes := string(a.All), a.Sizes
			for _, r := range a.Replies {
				if r.Refusal != "" {
					got = append(got, Code(r.Refusal))
				}
				for _, n := range sizes[:r.Sizes] {
					if n < 0 {
						got = append(got, "-")
						continue
					}
					got, all = append(got, all[:n]), all[n:]
				}
				sizes = sizes[r.Sizes:]
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
	long := strings.Repeat("0123456789\r\n", 50_000) // longer than the buffer, and longer than the buffer that is kept
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

// served returns a wire whose other end reads the request and sends the given reply.
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
		{"*1\r\n*1\r\n$1\r\na\r\n", hangUp, errNotTexts}, // a nested reply, which the question does not allow
		{"*1\r\n$0123456789\r\n", hangUp, io.ErrUnexpectedEOF},
		{"*1\r\n$1\rxa\r\n", hangUp, errNotTexts},
		{"*1\r\n$9\r\na", func(net.Conn) {}, context.DeadlineExceeded}, // the connection's own timeout ends the wait
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

// entriesOf asks for the entries of a stream, and returns the reply as a text that shows the nesting.
func entriesOf(ctx context.Context, c interface {
	Ask(ctx context.Context, q *Question) error
}, key string) (text, taken string, err error) {
	err = c.Ask(ctx, &Question{
		Commands: 1, Nested: true,
		Write: func(buf []byte, _ int) []byte {
			buf = AppendWord(AppendCommand(buf, 4, "XRANGE"), key)
			return AppendWord(AppendWord(buf, "-"), "+")
		},
		Read: func(a *Answers) error {
			r := a.Replies[0]
			text = fmt.Sprintf("%s%d of %d:", r.Refusal, r.Elements, r.Sizes)
			taken = a.Take()
			all := taken
			for _, size := range a.Sizes {
				if n := Nested(size); n >= 0 {
					text += fmt.Sprintf("[%d]", n)
					continue
				}
				text, all = text+all[:size]+";", all[size:]
			}
			return nil
		},
	})
	return text, taken, err
}

// A text that was taken must not change when the next question is asked.
func TestNestedRepliesAreReadAsTheyAre(t *testing.T) {
	g := newRig(t)
	c, err := g.store.Conn(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, long := range []string{"", "\r\n$1\r\n", strings.Repeat("0123456789", wireReads/10), strings.Repeat("x", wireKeeps+1)} {
		g.Do("DEL", "k")
		want := "300 of 2100:"
		for i := range 300 {
			value := strconv.Itoa(i)
			if i == 200 {
				value = long
			}
			id, _ := g.Do("XADD", "k", fmt.Sprintf("%d-1", i+1), "n", i, "", value).([]byte)
			want += fmt.Sprintf("[2]%s;[4]n;%d;;%s;", id, i, value)
		}
		got, taken, err := entriesOf(t.Context(), c, "k")
		before := strings.Clone(taken)
		if others, _, err := entriesOf(t.Context(), c, "none"); others != "0 of 0:" || err != nil {
			t.Errorf("of nothing: %q, %v", others, err)
		}
		g.Do("HSET", "hash", "f", strings.Repeat("x", wireKeeps+wireKeeps/4))
		if _, err := hmget(t.Context(), c, []string{"hash"}, "f"); err != nil {
			t.Error(err)
		}
		if err != nil || got != want || taken != before {
			t.Errorf("%d bytes, want %d; %v", len(got), len(want), err)
		}
	}
	g.Do("SET", "text", "x")
	if got, _, err := entriesOf(t.Context(), c, "text"); !strings.HasPrefix(got, "WRONGTYPE") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for reply, want := range map[string]error{
		"*1\r\n*2\r\n$3\r\n1-1\r\n":      io.ErrUnexpectedEOF,
		"*1\r\n*-1\r\n":                  errNotTexts,
		"*1\r\n*1\r\n:1\r\n":             errNotTexts,
		"*1\r\n*0\r\n$1\r\na\r\n":        errNotTexts, // the reply has more elements than it announces
		"*1\r\n*2\r\n$1\r\na\r\n$1\r\nb": io.ErrUnexpectedEOF,
	} {
		w := served(t, reply, func(c net.Conn) { _ = c.Close() })
		_, _, err := entriesOf(t.Context(), w, "k")
		if errors.Is(err, io.ErrClosedPipe) {
			err = io.ErrUnexpectedEOF // a pipe says so of its other end
		}
		if !errors.Is(err, want) || w.Err() == nil {
			t.Errorf("%q: %v, want %v; connection %v", reply, err, want, w.Err())
		}
	}
}
