package headers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"
)

// pieces is a connection that delivers some bytes in random pieces.
type pieces struct {
	net.Conn
	left []byte
	cut  func(most int) int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(into[:p.cut(len(into))], p.left)
	p.left = p.left[n:]
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }
func (p *pieces) Close() error                     { return nil }

// reply writes a random reply.
func reply(t *rapid.T, into *bytes.Buffer, depth int) {
	kinds := 6
	if depth > 4 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		fmt.Fprintf(into, "+%s\r\n", rapid.StringMatching(`[a-z$*]{0,80}`).Draw(t, "status"))
	case 1:
		fmt.Fprintf(into, "-ERR %s\r\n", rapid.StringMatching(`[a-z$*]{0,80}`).Draw(t, "refusal"))
	case 2:
		fmt.Fprintf(into, ":%d\r\n", rapid.Int64().Draw(t, "number"))
	case 3:
		into.WriteString(rapid.SampledFrom([]string{"$-1\r\n", "*-1\r\n", "*0\r\n"}).Draw(t, "none"))
	case 4, 5:
		size := rapid.SampledFrom([]int{0, 1, 2, 63, 5000, holdAbove, holdAbove + 1, 2*holdAbove + 17}).Draw(t, "size")
		text := strings.Repeat("\r\n$9000000000000000000\r\n*", size/20+1)[:size]
		fmt.Fprintf(into, "$%d\r\n%s\r\n", size, text)
	case 6:
		n := rapid.IntRange(1, 5).Draw(t, "elements")
		fmt.Fprintf(into, "*%d\r\n", n)
		for range n {
			reply(t, into, depth+1)
		}
	}
}

func TestHonestRepliesPassAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all bytes.Buffer
		n := rapid.IntRange(1, 6).Draw(t, "replies")
		for range n {
			reply(t, &all, 0)
		}
		read := func(guarded bool) (replies []any) {
			var c net.Conn = &pieces{left: bytes.Clone(all.Bytes()), cut: func(most int) int {
				return rapid.SampledFrom([]int{1, min(7, most), most}).Draw(t, "cut")
			}}
			if all.Len() > 100_000 {
				c.(*pieces).cut = func(most int) int { return min(most, 30_011) }
			}
			if guarded {
				c = Guard(c, "redis x")
			}
			r := redis.NewConn(c, 0, 0)
			for range n {
				value, err := r.Receive()
				if err != nil && !errors.As(err, new(redis.Error)) {
					t.Fatalf("guarded %v: %v", guarded, err)
				}
				replies = append(replies, value, err)
			}
			return replies
		}
		if want, got := read(false), read(true); !reflect.DeepEqual(want, got) {
			t.Fatalf("through the guard other replies come: %.200q, want %.200q", got, want)
		}
	})
}

// A text with the maximum length needs only as much memory as the bytes that have arrived.
func TestAPromisedTextCostsNothing(t *testing.T) {
	began := fmt.Sprintf("$%d\r\n%s", MostText, strings.Repeat("x", 3*piece))
	c := Guard(&pieces{left: []byte(began), cut: func(most int) int { return most }}, "redis x")
	r := redis.NewConn(c, 0, 0)
	if _, err := r.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("half a text: %v", err)
	}
	if n := len(c.held); n > 5 {
		t.Errorf("%d pieces are held of a text of which three have come", n)
	}
}

func TestLimitsAreOfAWholeReply(t *testing.T) {
	array := func(n int) string { return fmt.Sprintf("*%d\r\n", n) }
	for name, c := range map[string]struct {
		sent string
		what string
	}{
		"a text":         {fmt.Sprintf("$%d\r\n", MostText+1), "a text of 536870913 bytes"},
		"an array":       {array(MostElements + 1), "a reply of 4194305 elements"},
		"arrays":         {array(2) + array(MostElements-2) + array(1), "a reply of 4194305 elements"},
		"after a reply":  {"+OK\r\n" + array(1) + ":1\r\n" + array(MostElements+1), "a reply of 4194305 elements"},
		"nesting":        {strings.Repeat(array(1), MostDepth+1), "33 levels deep"},
		"no end of line": {"+" + strings.Repeat("x", MostLine+1), "a line without an end"},
		"beyond numbers": {"$" + strings.Repeat("9", 30) + "\r\n", "a text of more than 9223372036854775806 bytes"},
	} {
		r := redis.NewConn(Guard(&pieces{left: []byte(c.sent), cut: func(most int) int { return most }}, "redis x"), 0, 0)
		var err error
		for range 3 {
			if _, err = r.Receive(); err != nil {
				break
			}
		}
		excess, ok := errors.AsType[*LimitError](err)
		if !ok || excess.Server != "redis x" || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var within strings.Builder
	for range 3 { // each reply is counted separately
		within.WriteString(array(200_000) + strings.Repeat("$0\r\n\r\n", 200_000))
	}
	g := Guard(&pieces{left: []byte(within.String()), cut: func(most int) int { return most }}, "redis x")
	r := redis.NewConn(g, 0, 0)
	for range 3 {
		if all, err := redis.Values(r.Receive()); err != nil || len(all) != 200_000 {
			t.Fatalf("%d elements, %v", len(all), err)
		}
	}
	if g.elements != 0 || g.bytes != 0 || len(g.left) != 0 {
		t.Errorf("after whole replies %d elements and %d bytes are counted", g.elements, g.bytes)
	}
	if err := Total(0, MostBytes+1); err == nil || Total(MostElements, MostBytes) != nil {
		t.Errorf("all bytes: %v", err)
	}
}

// BenchmarkGuard compares the library with and without the guard, with pipelined rows of ten short texts.
func BenchmarkGuard(b *testing.B) {
	const rows = 10_000
	row := "*10\r\n" + strings.Repeat("$16\r\n0123456789abcdef\r\n", 10)
	all := []byte(strings.Repeat(row, rows))
	for _, guarded := range []bool{false, true} {
		b.Run(fmt.Sprintf("guarded=%v", guarded), func(b *testing.B) {
			for b.Loop() {
				var c net.Conn = &pieces{left: all, cut: func(most int) int { return most }}
				if guarded {
					c = Guard(c, "redis x")
				}
				r := redis.NewConn(c, 0, 0)
				for range rows {
					if _, err := r.Receive(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
