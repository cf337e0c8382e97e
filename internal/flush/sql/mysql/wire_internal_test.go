package mysql

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// across is a wire, and the server's end of it.
func across(t *testing.T) (w *wire, server net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return &wire{Conn: near, known: map[string]uint32{}, limit: maxPacket}, far
}

// greet has the driver answer the greeting of a server.
func greet(t *testing.T, w *wire, server net.Conn, capabilities uint32) {
	t.Helper()
	drain(t, server, 36)
	answer := make([]byte, 36)
	answer[3] = 1
	binary.LittleEndian.PutUint32(answer[4:], capabilities)
	if _, err := w.Write(answer); err != nil {
		t.Fatal(err)
	}
}

// drain reads so many bytes beside the test.
func drain(t *testing.T, server net.Conn, n int) <-chan []byte {
	t.Helper()
	got := make(chan []byte, 1)
	go func() {
		all := make([]byte, n)
		_, _ = io.ReadFull(server, all)
		got <- all
	}()
	return got
}

// prepare has the driver prepare a statement, to which the server gives a number, byte by byte.
func prepare(t *testing.T, w *wire, server net.Conn, answer []byte) error {
	t.Helper()
	text := []byte{7, 0, 0, 0, comStmtPrepare, 'S', 'E', 'L', 'E', 'C', 'T'}
	sent := drain(t, server, len(text))
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	<-sent
	go func() { _, _ = server.Write(answer) }()
	got := make([]byte, len(answer))
	for i := range got {
		if _, err := w.Read(got[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

func TestStatementsAreKnownOnlyOnAPlainConnection(t *testing.T) {
	for capabilities, want := range map[uint32]bool{
		0: true, clientSSL: false, clientCompress: false, clientZstd: false, clientQueryAttributes: false,
		^uint32(clientSSL | clientCompress | clientZstd | clientQueryAttributes): true,
	} {
		w, server := across(t)
		greet(t, w, server, capabilities)
		known, err := w.know("a", func() error { return prepare(t, w, server, []byte{9, 0, 0, 1, answerOK, 1, 2, 0, 0, 77, 77}) })
		if err != nil || known != want || want && w.known["a"] != 0x201 {
			t.Errorf("%x: %v, %v, %v; want %v", capabilities, known, err, w.known, want)
		}
	}
}

func TestStatementThatIsClosedIsForgotten(t *testing.T) {
	w, server := across(t)
	greet(t, w, server, 0)
	_, _ = w.know("a", func() error { return prepare(t, w, server, []byte{5, 0, 0, 1, answerOK, 1, 0, 0, 0}) })
	_, _ = w.know("b", func() error { return prepare(t, w, server, []byte{5, 0, 0, 1, answerOK, 2, 0, 0, 0}) })
	closing := []byte{5, 0, 0, 0, comStmtClose, 1, 0, 0, 0}
	drain(t, server, len(closing))
	if _, err := w.Write(closing); err != nil {
		t.Fatal(err)
	}
	if len(w.known) != 1 || w.known["b"] != 2 {
		t.Errorf("known: %v, want only b", w.known)
	}
	if known, _ := w.know("c", func() error { return prepare(t, w, server, []byte{5, 0, 0, 1, answerError, 3, 0, 0, 0}) }); known {
		t.Error("a statement that was refused is known")
	}
}

// exchanged executes a statement of one NULL to which the server answers so.
func exchanged(t *testing.T, answer []byte) (*wire, error) {
	t.Helper()
	w, server := across(t)
	w.known["a"] = 1
	const length = 4 + 10 + 1 + 1 + 2
	got := drain(t, server, length)
	go func() {
		<-got
		_, _ = server.Write(answer)
		_ = server.Close()
	}()
	return w, w.execute(t.Context(), "a", &row.Plan{}, []row.Row{{Values: []row.Value{{}}}}, []int{0})
}

func TestAnswersOfTheServer(t *testing.T) {
	if _, err := exchanged(t, []byte{7, 0, 0, 1, answerOK, 1, 0, 2, 0, 0, 0}); err != nil {
		t.Errorf("OK: %v", err)
	}
	w, err := exchanged(t, append([]byte{14, 0, 0, 1, answerError, 0xbd, 4}, "#40001again"...))
	want := mysql.MySQLError{Number: 1213, SQLState: [5]byte{'4', '0', '0', '0', '1'}, Message: "again"}
	if got, ok := errors.AsType[*mysql.MySQLError](err); !ok || *got != want {
		t.Errorf("got %#v, want %#v", err, want)
	}
	if _, err := w.Conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // the server's end is closed, ours is not
		t.Errorf("the connection is closed after an error of the server: %v", err)
	}
	for name, answer := range map[string][]byte{
		"the connection is lost":  nil,
		"half of an answer":       {7, 0, 0, 1, answerOK},
		"an answer out of order":  {7, 0, 0, 2, answerOK, 1, 0, 2, 0, 0, 0},
		"an answer with columns":  {7, 0, 0, 1, 3, 1, 0, 2, 0, 0, 0},
		"an answer of no content": {0, 0, 0, 1},
	} {
		w, err := exchanged(t, answer)
		if err == nil || judge(err) != sql.Passing {
			t.Errorf("%s: %v, verdict %v; want one that may be tried again", name, err, judge(err))
		}
		if _, err := w.Conn.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: the connection is open: %v", name, err)
		}
	}
}

func TestContextEndsAnExchange(t *testing.T) {
	w, server := across(t)
	w.known["a"] = 1
	ctx, cancel := context.WithCancel(t.Context())
	got := drain(t, server, 18)
	go func() { <-got; cancel() }() // and no answer
	err := w.execute(ctx, "a", &row.Plan{}, []row.Row{{Values: []row.Value{{}}}}, []int{0})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Conn.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}
