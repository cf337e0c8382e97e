package postgres

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/row"
	"baton/internal/testsupport"
)

// After the driver has returned the error of a broken connection, it may still read from our buffer. The test stops the driver there. If
// the buffer were given back before, another batch would use it at the same time.
func TestMemoryOfACopyThatBrokeIsNotUsedAgain(t *testing.T) {
	db := testsupport.Postgres(t)
	proxy := db.Proxy()
	broken := &stoppedCopier{PgConn: connect(t, db.DSNThrough(proxy)), reading: make(chan struct{}),
		goOn: make(chan struct{}), ended: make(chan struct{})}
	var buffers lent
	failed := make(chan error, 1)
	go func() { failed <- copyAges(t.Context(), broken, &buffers) }()
	select {
	case <-broken.reading:
	case err := <-failed:
		t.Fatalf("the COPY ended before its second piece: %v", err)
	}
	proxy.Cut()
	if err := <-failed; err == nil {
		t.Error("a COPY over a connection that was cut succeeded")
	}
	if buffers.out != 1 || buffers.back != 0 {
		t.Errorf("%d buffers lent, %d given back while the driver reads", buffers.out, buffers.back)
	}
	close(broken.goOn)
	<-broken.ended

	if err := copyAges(t.Context(), connect(t, db.DSN), &buffers); err != nil {
		t.Fatal(err)
	}
	if buffers.out != 2 || buffers.back != 1 {
		t.Errorf("%d buffers lent, %d given back after a COPY that succeeded", buffers.out, buffers.back)
	}
}

// If the server refuses a COPY, the connection is sound, because the driver has stopped reading.
func TestMemoryOfARefusedCopyIsGivenBack(t *testing.T) {
	var buffers lent
	conn := connect(t, testsupport.Postgres(t).DSN)
	var refused *pgconn.PgError
	if err := copyTo(t.Context(), conn, &buffers, "COPY nowhere FROM STDIN BINARY"); !errors.As(err, &refused) {
		t.Errorf("a COPY into no table: %v", err)
	}
	if buffers.out != 1 || buffers.back != 1 {
		t.Errorf("%d buffers lent, %d given back", buffers.out, buffers.back)
	}
}

func copyAges(ctx context.Context, to copier, buffers *lent) error {
	return copyTo(ctx, to, buffers, "CREATE TEMPORARY TABLE ages (age bigint); COPY pg_temp.ages FROM STDIN BINARY")
}

// copyTo copies rows of several pieces.
func copyTo(ctx context.Context, to copier, buffers *lent, statement string) error {
	plan := compile(&row.Plan{Table: row.Table{Name: "ages"}, Columns: []row.PlanColumn{
		{Column: row.Column{Name: "age", Kind: row.KindInteger, Bits: 64}}}})
	rows := make([]row.Row, 3*copyPiece/8)
	for i := range rows {
		rows[i].Values = []row.Value{row.Integer(int64(i))}
	}
	return copyRows(ctx, to, buffers, statement, &copyReader{columns: plan.columns, rows: rows})
}

func connect(t *testing.T, dsn string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // a connection that was cut is closed already
	return conn
}

// lent is a pool that counts its buffers.
type lent struct{ out, back int }

func (l *lent) Get() any { l.out++; return new([]byte) }
func (l *lent) Put(any)  { l.back++ }

// stoppedCopier stops the driver when it reads the second piece.
type stoppedCopier struct {
	*pgconn.PgConn
	r                    io.Reader
	pieces               int
	reading, goOn, ended chan struct{}
}

func (s *stoppedCopier) CopyFrom(ctx context.Context, r io.Reader, sql string) (pgconn.CommandTag, error) {
	s.r = r
	return s.PgConn.CopyFrom(ctx, s, sql)
}

func (s *stoppedCopier) Read(p []byte) (int, error) {
	s.pieces++
	if s.pieces == 2 {
		close(s.reading)
		<-s.goOn
		defer close(s.ended)
	}
	return s.r.Read(p)
}
