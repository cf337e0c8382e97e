package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/redisconn"
)

func command(words ...string) string {
	b := redisconn.AppendCommand(nil, len(words), words[0])
	for _, w := range words[1:] {
		b = redisconn.AppendWord(b, w)
	}
	return string(b)
}

// sent sends a text in pieces of the given size, and returns the commands that Follow has passed on, the position and the error.
func sent(t testing.TB, text string, piece int) (commands []string, at Position, err error) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // acknowledgements
	go func() {
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(theirs, rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		_ = theirs.Close()
	}()
	r := newRecord()
	err = newStream(newReader(ours), Position{ReplID: "id", Offset: 1000, DB: AnyDB}).Follow(context.Background(), r)
	commands, at = r.all()
	return commands, at, err
}

func TestCommandsAreReadWhereverTheirBytesAreCut(t *testing.T) {
	long := strings.Repeat("v", longest+1)
	text := command("ping") + command("SET", "a", "") + command("select", "12") + command("SET", "b", long, "PX", "5") +
		command("REPLCONF", "ACK", "1") + command("MSET", "c", long, "d", "\r\n$1\r\n")
	want := []string{"-1 SET a ", "12 SET b (long) PX 5", "12 MSET c (long) d \r\n$1\r\n"}
	for _, piece := range []int{1, 2, 3, 7, 1000, longest, longest + 3, buffered, 1 << 30} {
		if piece < 7 {
			long := strings.Repeat("v", 100)
			short := strings.ReplaceAll(text, fmt.Sprintf("$%d\r\n%s", longest+1, strings.Repeat("v", longest+1)), "$100\r\n"+long)
			got, at, _ := sent(t, short, piece)
			if !slices.Equal(got, replaced(want, long)) || at.Offset != 1000+int64(len(short)) {
				t.Errorf("pieces of %d: %q at %d", piece, got, at.Offset-1000)
			}
			continue
		}
		got, at, err := sent(t, text, piece)
		if !slices.Equal(got, want) || at.Offset != 1000+int64(len(text)) || at.DB != 12 {
			t.Errorf("pieces of %d: %q at %d of %d", piece, got, at.Offset-1000, len(text))
		}
		if err == nil || !strings.Contains(err.Error(), "broke") {
			t.Errorf("ended with %v", err)
		}
	}
}

func replaced(texts []string, with string) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "(long)", with)
	}
	return out
}

// A position must never be inside a transaction.
func TestNoPositionIsInsideATransaction(t *testing.T) {
	before := command("SELECT", "1") + command("SET", "a", "1")
	inside := before + command("MULTI") + command("SELECT", "2") + command("SET", "b", "1")
	for text, want := range map[string]Position{
		before: {"id", 1000 + int64(len(before)), 1},
		inside: {"id", 1000 + int64(len(before)), 1},
		inside + command("EXEC") + "*2\r\n$3\r\nDEL": {"id", 1000 + int64(len(inside+command("EXEC"))), 2},
	} {
		if _, at, _ := sent(t, text, 5); at != want {
			t.Errorf("%q: at %+v, want %+v", text, at, want)
		}
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	good := command("SET", "a", "1")
	for _, bad := range []string{
		"+OK\r\n", "*0\r\n", "*1\r\n:3\r\n", "*1\r\n$1\r\nab\r\n", "*-1\r\n", "\n", "PING\r\n", "*1\r\r\n", "*99999999999999999\r\n",
	} {
		for _, piece := range []int{1, 1 << 20} {
			got, at, err := sent(t, good+bad+good, piece)
			wants(t, err, ErrGarbled, fmt.Sprint(1000+len(good)))
			if len(got) != 1 || at.Offset > 1000+int64(len(good)) {
				t.Errorf("%q: %q at %d", bad, got, at.Offset)
			}
		}
	}
}

func TestACommandThatIsTooLongIsNotKept(t *testing.T) {
	words := []string{"MSET"}
	for range most/(1<<14) + 100 {
		words = append(words, "k", strings.Repeat("v", 1<<14))
	}
	text := command(words...) + command("DEL", "a")
	got, at, _ := sent(t, text, 1<<20)
	if want := []string{"-1", "-1 DEL a"}; !slices.Equal(got, want) || at.Offset != 1000+int64(len(text)) {
		t.Errorf("%d commands at %d of %d", len(got), at.Offset-1000, len(text))
	}
}

// mute is a connection whose writes fail.
type mute struct{ net.Conn }

var errMute = errors.New("no route to host")

func (mute) Write([]byte) (int, error) { return 0, errMute }

func TestAStreamThatEndsByAnAcknowledgementSaysWhy(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ours, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	err = newStream(newReader(mute{ours}), Position{}).Follow(t.Context(), newRecord())
	if !errors.Is(err, errMute) || errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "no acknowledgement") {
		t.Errorf("ended with %v", err)
	}
}

// counter is a handler that does nothing.
type counter struct{ commands, bytes int }

func (c *counter) Command(_ int, args [][]byte) {
	c.commands, c.bytes = c.commands+1, c.bytes+len(args[1])
}
func (c *counter) Reached(Position) {}

// endless delivers the same bytes repeatedly.
type endless struct {
	net.Conn
	text []byte
	at   int
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && e.left > 0 {
		m := copy(p[n:min(len(p), n+e.left)], e.text[e.at:])
		n, e.at, e.left = n+m, (e.at+m)%len(e.text), e.left-m
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
func (e *endless) Write(p []byte) (int, error)      { return len(p), nil }
func (e *endless) Close() error                     { return nil }
func (e *endless) SetReadDeadline(time.Time) error  { return nil }
func (e *endless) SetWriteDeadline(time.Time) error { return nil }

func someWrites(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(command("HSET", fmt.Sprintf("user:%d", i*7919%95000), "name", "Somebody With A Name", "score", fmt.Sprint(i)))
	}
	return b.Bytes()
}

func TestFollowingAllocatesNothingForACommand(t *testing.T) {
	text := someWrites(1000)
	const rounds = 20
	allocations := testing.AllocsPerRun(3, func() {
		s := newStream(newReader(&endless{text: text, left: len(text) * rounds}), Position{})
		c := &counter{}
		_ = s.follow(c)
		if c.commands != 1000*rounds {
			t.Errorf("%d commands", c.commands)
		}
	})
	if allocations > 30 {
		t.Errorf("%v allocations for %d commands", allocations, 1000*rounds)
	}
}

func BenchmarkFollow(b *testing.B) {
	text := someWrites(1000)
	b.SetBytes(int64(len(text) / 1000))
	c := &counter{}
	s := newStream(newReader(&endless{text: text, left: len(text) / 1000 * b.N}), Position{})
	b.ReportAllocs()
	b.ResetTimer()
	_ = s.follow(c)
}
