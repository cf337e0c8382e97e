package testsupport

import (
	"bufio"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Liar is a server that imitates a broken Redis, or a server of another kind. It answers each command with the next lie of a list. After
// the last lie it stops answering on that connection.
type Liar struct {
	ln     net.Listener
	lies   []string
	honest map[string]string

	mu    sync.Mutex
	next  int
	conns map[net.Conn]struct{}
	work  sync.WaitGroup
}

// NewLiar starts a Liar that serves until the test ends. The argument honest contains true replies to some commands. Each key is the name
// of a command, or the name and the first argument. The Liar also gives true replies to the commands that open a connection.
func NewLiar(t testing.TB, honest map[string]string, lies ...string) *Liar {
	t.Helper()
	_, ln, err := listenFree()
	if err != nil {
		t.Fatalf("start a liar for this test: %v", err)
	}
	l := &Liar{ln: ln, lies: lies, conns: map[net.Conn]struct{}{}, honest: map[string]string{
		"AUTH": "+OK\r\n", "SELECT": "+OK\r\n", "CLIENT SETNAME": "+OK\r\n", "PING": "+PONG\r\n", "REPLCONF": "+OK\r\n",
	}}
	maps.Copy(l.honest, honest)
	l.work.Go(l.serve)
	t.Cleanup(l.close)
	return l
}

// Addr returns the address to connect to.
func (l *Liar) Addr() string { return l.ln.Addr().String() }

// Told returns the number of lies told so far.
func (l *Liar) Told() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

func (l *Liar) close() {
	_ = l.ln.Close()
	l.mu.Lock()
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.work.Wait()
}

func (l *Liar) serve() {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		l.work.Go(func() {
			l.answer(c)
			_ = c.Close()
			l.mu.Lock()
			delete(l.conns, c)
			l.mu.Unlock()
		})
	}
}

func (l *Liar) answer(c net.Conn) {
	for r := bufio.NewReader(c); ; {
		words, err := readWords(r)
		if err != nil || len(words) == 0 {
			return
		}
		name := strings.ToUpper(words[0])
		reply, ok := l.honest[name]
		if len(words) > 1 && !ok {
			reply, ok = l.honest[name+" "+strings.ToUpper(words[1])]
		}
		if !ok {
			l.mu.Lock()
			reply = l.lies[l.next%len(l.lies)]
			l.next++
			l.mu.Unlock()
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
		if !ok {
			_, _ = io.Copy(io.Discard, r) // until the client closes the connection
			return
		}
	}
}

// readWords reads a command.
func readWords(r *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || len(line) < 3 {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	var words []string
	for range n {
		size, err := number()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, err
}

// GraveLies are replies with false lengths: a client that believes such a length panics or runs out of memory.
var GraveLies = []string{
	"$9000000000000000000\r\n",
	"*9000000000000000000\r\n",
	"$1000000000000\r\n",
	"$1000000000000\r\n" + strings.Repeat("x", 128<<10), // only the beginning arrives
	"*100000000000\r\n",
	"$9223372036854775807\r\n",
	"*9223372036854775807\r\n",
	"$9223372036854775806\r\n",
	"*2\r\n$3\r\nabc\r\n$1000000000000\r\n",
	"*2\r\n*2\r\n:1\r\n*9000000000000000000\r\n",
	"*3\r\n$1\r\n0\r\n*1\r\n$1000000000000\r\n" + strings.Repeat("x", 128<<10),
	strings.Repeat("*1\r\n", 200_000), // arrays in arrays
	strings.Repeat("*4000000\r\n", 100),
}

// Lies are the GraveLies and other replies that no Redis sends.
var Lies = append([]string{
	"$18446744073709551615\r\n",
	"*18446744073709551617\r\n",
	"$99999999999999999999999999999999\r\n",
	"$" + strings.Repeat("9", 200_000),
	"$-2\r\n",
	"*-9223372036854775808\r\n",
	"$-\r\n",
	"$\r\n",
	"*\r\n",
	"$536870912\r\nabc", // the longest text that a Redis accepts, but only three bytes of it arrive
	"+" + strings.Repeat("x", 200_000),
	"-" + strings.Repeat("x", 200_000),
	":" + strings.Repeat("7", 200_000),
	":99999999999999999999999\r\n",
	"%9000000000000000000\r\n", // of a protocol version that the client did not ask for
	"~9000000000000000000\r\n",
	"=9000000000000000000\r\n",
	"!9000000000000000000\r\n",
	"\r\n",
	"$3\r\nabcde$9000000000000000000\r\n",
	"*0\r\n",
	"*-1\r\n",
	"$-1\r\n",
	"$0\r\n\r\n",
	"*1\r\n$-1\r\n",
	"*1\r\n*0\r\n",
	"*2\r\n$1\r\n0\r\n*2\r\n$-1\r\n*0\r\n",
	"+QUEUED\r\n",
	":-1\r\n",
}, GraveLies...)
