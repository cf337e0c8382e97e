package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pressly/goose/v3"
)

// pgQuote quotes as standard SQL does.
const pgQuote quote = `"`

// errPostgresDSN names the form and not the text: what made a DSN unreadable is
// often the password.
var errPostgresDSN = errors.New(`the DSN cannot be read: use postgres://user:password@host:5432/database?sslmode=require, with special characters of the password percent-encoded, or "host=… user=… dbname=…"`)

// postgres is a database behind pgx's native pool. Batches go through pgconn's
// pipeline mode with parameters encoded here: that is what spares a page of rows
// an allocation for every value.
type postgres struct {
	store *Store
	pool  *pgxpool.Pool
	plans planCache[*pgPlan]

	buffers sync.Pool   // *[]byte, for encoded parameters
	noPiles atomic.Bool // no temporary tables to be had
}

func openPostgres(s *Store, o Options) (database, error) {
	if strings.TrimSpace(o.DSN) == "" {
		return nil, errPostgresDSN // pgx would go by the environment
	}
	config, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, errPostgresDSN
	}
	config.MaxConns = int32(min(o.MaxConns, 1000)) + 1 // one for catalogue and migration
	config.MinConns = 0
	config.MaxConnIdleTime = 5 * time.Minute
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = s.limits.statement
	}
	params := config.ConnConfig.RuntimeParams
	params["lock_timeout"] = millis(s.limits.lock)
	params["statement_timeout"] = millis(s.limits.statement)
	params["idle_in_transaction_session_timeout"] = millis(s.limits.idle)
	// A role or a database may have other defaults. What we remove from Redis
	// must be on disk, and the check of the fence must see the newest row.
	params["synchronous_commit"] = "on"
	params["default_transaction_isolation"] = "read committed"
	params["default_transaction_read_only"] = "off"
	params["TimeZone"] = "UTC"
	params["client_encoding"] = "UTF8" // without it the server takes our texts for its own encoding
	if params["application_name"] == "" {
		params["application_name"] = "baton"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, errPostgresDSN
	}
	db := &postgres{store: s, pool: pool}
	db.buffers.New = func() any { return new([]byte) }
	return db, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

func (p *postgres) session(ctx context.Context) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, p.store.limits.trip)
	defer cancel()
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &pgSession{db: p, conn: conn, pg: conn.Conn().PgConn(), buf: p.buffers.Get().(*[]byte)}, nil
}

func (p *postgres) ping(ctx context.Context) error { return p.pool.Ping(ctx) }

// closeWithin bounds the wait for connections to say goodbye to a server that may
// hang: pgx would wait for a quarter of a minute.
const closeWithin = time.Second

func (p *postgres) close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeWithin): // nothing is under way on them, and the process is about to end
	}
	return nil
}

func (p *postgres) migration() (migration, error) {
	db := stdlib.OpenDBFromPool(p.pool)
	return migration{
		db:      db,
		dialect: goose.DialectPostgres,
		release: db.Close, // gives the connections back to the pool
	}, nil
}

// judge goes by SQLSTATE.
func (p *postgres) judge(err error) verdict {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		if _, ok := errors.AsType[*wrongKind](err); ok {
			return lasting
		}
		return passing // whatever the server did not say comes from the connection
	}
	switch pg.Code {
	case "42601", // our statement is prepared, so this is of a value: a tsquery, a jsonpath
		"21000", // the same key twice in one statement, in the database's eyes: halves part them
		"44000", // WITH CHECK OPTION
		"54000", // too long for an index
		"54001": // nested too deep
		return refused
	case "42501": // a permission that is missing, or a row that a policy does not let in
		if pg.Routine == "ExecWithCheckOptions" {
			return refused
		}
		return lasting
	case "2200H": // a sequence has run out: not the fault of a row
		return lasting
	case "25006", // read-only: a standby, or not promoted yet
		"25P03", // idle in transaction for too long
		"26000", // a pooler gave us another server session
		"55P03", // lock timeout
		"57014": // statement timeout
		return passing
	}
	switch pg.Code[:2] {
	case "22", "23", "09", "27", "2F", "38", "39", "45", "P0": // data, constraints, what triggers do and say
		return refused
	case "72", "XX":
		return lasting
	case "08", "40", "53", "57", "58": // connection, rolled back, resources, operator, system
		return passing
	}
	if c := pg.Code[0]; c >= '6' && c <= '9' || c >= 'I' {
		return refused // the standard leaves these to users: a trigger's own
	}
	return lasting
}

// explain adds what PostgreSQL says beside its message.
func (p *postgres) explain(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err.Error()
	}
	text := pg.Message
	for _, more := range []struct{ what, name string }{{"column", pg.ColumnName}, {"constraint", pg.ConstraintName}} {
		if more.name != "" && !strings.Contains(text, more.name) {
			text += " (" + more.what + " " + more.name + ")"
		}
	}
	if pg.Detail != "" {
		text += ": " + pg.Detail
	}
	return text + " (SQLSTATE " + pg.Code + ")"
}

// pgName is what sessions call the prepared form of a statement.
func pgName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return pgPrepared + hex.EncodeToString(sum[:12])
}

// pgPrepared begins the names of our prepared statements.
const pgPrepared = "baton_"
