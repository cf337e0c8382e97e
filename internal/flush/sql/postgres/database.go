package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	dbsql "database/sql"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"baton/internal/flush/sql"
)

// quote is the quotation mark for identifiers, as in standard SQL.
const quote sql.Quote = `"`

// postgres is a database behind pgx's native pool. Batches use pgconn's pipeline mode. Package postgres, and not pgx, encodes the
// parameters, because this saves an allocation for every value of a page.
type postgres struct {
	limits  sql.Limits
	queries sql.Queries
	pool    *pgxpool.Pool
	plans   sql.PlanCache[*compiledPlan]
	params  map[string]string // settings in the DSN
	// transacts means that the pooler supports transactions.
	transacts atomic.Bool
	pooled    atomic.Bool // a pooler may give each transaction another server session

	buffers   sync.Pool   // buffers of the type *[]byte for encoded parameters
	noStaging atomic.Bool // temporary tables cannot be created
}

func open(s sql.Setup) (sql.Database, error) {
	config, err := readDSN(s.DSN)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(min(s.MaxConns, 1000)) + 1 // one more for catalogue and migration
	config.MinConns = 0
	config.MaxConnIdleTime = 5 * time.Minute
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = s.Limits.Statement
	}
	// A prepared statement exists longer than its transaction, so baton itself prepares the statements that are worth it.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.StatementCacheCapacity, config.ConnConfig.DescriptionCacheCapacity = 0, 0
	params := config.ConnConfig.RuntimeParams
	takeOptions(params)
	config.ConnConfig.RuntimeParams = map[string]string{
		"client_encoding":  "UTF8", // otherwise the server expects its own encoding
		"application_name": cmp.Or(params["application_name"], "baton"),
	}
	if options := params["options"]; options != "" {
		config.ConnConfig.RuntimeParams["options"] = options
		delete(params, "options")
	}
	delete(params, "client_encoding")
	delete(params, "application_name")
	db := &postgres{limits: s.Limits, queries: s.Queries, params: params}
	db.buffers.New = func() any { return new([]byte) }
	db.pooled.Store(s.Pooled)
	config.AfterConnect = db.greet
	if db.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, errDSN
	}
	return db, nil
}

func (p *postgres) Session(ctx context.Context) (sql.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.Trip)
	defer cancel()
	conn, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &session{db: p, conn: conn, pg: conn.Conn().PgConn(), pooled: p.pooled.Load(), buf: p.buffers.Get().(*[]byte)}, nil
}

// acquire returns a connection from the pool. If the server has rejected an attempt to connect, acquire returns the server's answer as the
// error. pgx lists that answer after the error of an earlier attempt with TLS.
func (p *postgres) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := p.pool.Acquire(ctx)
	if err == nil {
		return conn, nil
	}
	var failed *pgconn.ConnectError
	var answer *pgconn.PgError
	if errors.As(err, &failed) && errors.As(err, &answer) {
		err = answer
	}
	return nil, sql.Connecting(err)
}

func (p *postgres) Certified() bool { return false }

func (p *postgres) Ping(ctx context.Context) error {
	conn, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return conn.Ping(ctx)
}

// closeWithin is the time limit for closing connections to a server that may hang, because pgx would wait 15 seconds.
const closeWithin = time.Second

func (p *postgres) Close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeWithin): // no statement runs on the connections, and the process is about to end
	}
	return nil
}

func (p *postgres) Absent(*sql.Report) bool { return false }

func (p *postgres) Plain() (*dbsql.DB, func() error) {
	db := stdlib.OpenDBFromPool(p.pool)
	return db, db.Close // Close gives the connections back to the pool
}

// judge returns the verdict about an error by its SQLSTATE.
func judge(err error) sql.Verdict {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		if _, ok := errors.AsType[*sql.WrongKind](err); ok {
			return sql.Lasting
		}
		return sql.Passing // the error comes from the connection, not from the server
	}
	switch pg.Code {
	case "42601", // the statement was prepared before, so a value is wrong: a tsquery, a jsonpath
		"21000", // one statement contains the same key twice, as the database compares keys: halves separate the two rows
		"44000", // WITH CHECK OPTION
		"54000", // too long for an index
		"54001": // nested too deep
		return sql.Refused
	case "42501": // a permission that is missing, or a row that a policy does not let in
		if pg.Routine == "ExecWithCheckOptions" {
			return sql.Refused
		}
		return sql.Lasting
	case "2200H": // a sequence has run out: not the fault of a row
		return sql.Lasting
	case "25006", // read-only: a standby, or not promoted yet
		"25P03", // idle in transaction for too long
		"26000", // a pooler gave us another server session
		"55P03", // lock timeout
		"57014": // statement timeout
		return sql.Passing
	}
	switch pg.Code[:2] {
	case "22", "23", "09", "27", "2F", "38", "39", "45", "P0": // data, constraints, triggers
		return sql.Refused
	case "72", "XX":
		return sql.Lasting
	case "08", "40", "53", "57", "58": // connection, rolled back, resources, operator, system
		return sql.Passing
	}
	if c := pg.Code[0]; c >= '6' && c <= '9' || c >= 'I' {
		return sql.Refused // the standard leaves these codes to users, such as triggers
	}
	return sql.Lasting
}

// explainPostgres adds the detail and hint of PostgreSQL's error.
func explainPostgres(err error) string {
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
	if pg.Hint != "" {
		text += ": " + pg.Hint
	}
	return text + " (SQLSTATE " + pg.Code + ")"
}

// hint returns the hint of PostgreSQL, which the text of the driver's error does not contain. It adds PostgreSQL's detail only if the error
// is about a statement or a right, because other details may contain values of a row.
func hint(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return ""
	case pg.Code == "25006": // a standby, or a read-only database
		return sql.AskDoctor
	case pg.Detail != "" && len(pg.Code) == 5 && (pg.Code[:2] == "42" || pg.Code[:2] == "0A"):
		return strings.TrimSpace(pg.Detail + " " + pg.Hint)
	}
	return pg.Hint
}

// rolledBack reports whether the error says that a statement was refused. An error that ends the session is different, because it may
// arrive while a transaction commits.
func rolledBack(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR"
}

// nameOf returns the name under which a statement is prepared.
func nameOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return prepared + hex.EncodeToString(sum[:12])
}

// prepared is the prefix of the names of our prepared statements.
const prepared = "baton_"
