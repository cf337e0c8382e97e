package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/sql"
)

// Each setting that baton makes lasts only for one transaction, so a pooler may give each transaction another session of the server. A
// pooler also accepts our startup parameters, because baton sends only two, and every pooler supports both: the application's name and the
// encoding of texts.

// limitSettings sets the time limits of a transaction, the durability of its COMMIT, and the forms of its texts. A limit that a DBA has set
// for the role or the database stays if it is less than our limit. limitSettings does not set whether the transaction may write, because
// only the server decides that.
//
// The text is short, because pg_stat_activity shows only the first 1,024 characters of a query.
func limitSettings(l sql.Limits) []string {
	limits := fmt.Sprintf("('lock_timeout', '%sms'), ('statement_timeout', '%sms'), ('idle_in_transaction_session_timeout', '%sms')",
		sql.Millis(l.Lock), sql.Millis(l.Statement), sql.Millis(l.Idle))
	return []string{
		// Changes must be on disk before we remove them from Redis. remote_apply promises more, so it stays.
		"set_config('synchronous_commit', CASE current_setting('synchronous_commit') " +
			"WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)",
		"set_config('TimeZone', 'UTC', true)",
		"set_config('bytea_output', 'hex', true)", // the form that read.go expects
		"set_config('DateStyle', 'ISO', true)",    // the form that read.go expects
		"(SELECT count(set_config(n, CASE WHEN s::interval BETWEEN '1us' AND m::interval THEN s ELSE m END, true)) FROM (SELECT n, m, " +
			"current_setting(n) s FROM (VALUES " + limits + ") v(n, m)) w)",
	}
}

// ofDSN returns the SQL expressions that make the settings in the DSN. If the argument local is true, the settings last for one
// transaction, otherwise for the session.
func ofDSN(params map[string]string, local bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		of := name
		if local && name == "default_transaction_read_only" { // too late, because the transaction has begun
			of = "transaction_read_only"
		}
		all = append(all, fmt.Sprintf("set_config(%s, %s, %t)", literal(of), literal(params[name]), local))
	}
	return all
}

// literal returns a quoted text that is valid whatever standard_conforming_strings is.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// Settings implements sql.Database.
func (p *postgres) Settings() string {
	all := limitSettings(p.limits)
	if p.pooled.Load() {
		all = append(ofDSN(p.params, true), all...)
	}
	return "SELECT " + strings.Join(all, ", ")
}

// greet sets up a new connection. If the id of the server's process differs from the id that was sent when the connection was made, the
// connection goes through a pooler. The pooler may give each transaction another process.
func (p *postgres) greet(ctx context.Context, conn *pgx.Conn) error {
	pg := conn.PgConn()
	if !p.pooled.Load() {
		results, err := pg.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
		if err != nil {
			return err
		}
		if len(results) != 1 || len(results[0].Rows) != 1 {
			return errors.New("the server did not send the process ID of this connection")
		}
		if string(results[0].Rows[0][0]) == strconv.FormatUint(uint64(pg.PID()), 10) {
			return p.setForSession(ctx, pg)
		}
		p.pooled.Store(true)
	}
	if p.transacts.Load() {
		return nil
	}
	for _, text := range []string{"BEGIN", "ROLLBACK"} {
		if _, err := pg.Exec(ctx, text).ReadAll(); sqlState(err) == "08P01" {
			return fmt.Errorf("%w: %w", errStatementMode, err)
		} else if err != nil {
			return err
		}
	}
	p.transacts.Store(true)
	return nil
}

// setForSession makes the settings in the DSN for the whole session.
func (p *postgres) setForSession(ctx context.Context, pg *pgconn.PgConn) error {
	if len(p.params) == 0 {
		return nil
	}
	_, err := pg.Exec(ctx, "SELECT "+strings.Join(ofDSN(p.params, false), ", ")).ReadAll()
	if sqlState(err) == "42704" {
		return fmt.Errorf("the server does not support a parameter of the DSN: correct or remove this parameter: %w", err)
	}
	return err
}

// errStatementMode means that the pooler allows no transactions.
var errStatementMode = errors.New("the pooler in front of PostgreSQL is in statement mode, which has no transactions: set " +
	"pool_mode = transaction for this database")

// within runs work in a transaction that is rolled back, because work only reads.
func (p *postgres) within(ctx context.Context, work func(pgx.Tx) error) error {
	conn, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // if this fails, the pool closes the connection
	if _, err := tx.Exec(ctx, p.Settings()); err != nil {
		return err
	}
	return work(tx)
}

// takeOptions moves the settings in libpq's parameter `options`, such as "-c search_path=shop", to the other settings. Options that are no
// settings stay in that parameter, because a hosting service may choose the server by them.
func takeOptions(params map[string]string) {
	found := map[string]string{}
	fields := strings.Fields(params["options"])
	for i := 0; i < len(fields); i++ {
		setting, ok := strings.CutPrefix(fields[i], "--")
		if !ok {
			setting, ok = strings.CutPrefix(fields[i], "-c")
		}
		if ok && setting == "" && i+1 < len(fields) {
			i++
			setting = fields[i]
		}
		name, value, given := strings.Cut(setting, "=")
		if !ok || !given || strings.Contains(setting, `\`) {
			return
		}
		found[strings.ReplaceAll(name, "-", "_")] = value
	}
	delete(params, "options")
	maps.Copy(params, found)
}
