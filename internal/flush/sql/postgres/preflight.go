package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"baton/internal/finding"
	"baton/internal/flush/sql"
)

const (
	minPostgres  = 13
	minPostgresN = minPostgres * 10000
)

func (p *postgres) Inspect(ctx context.Context, q sql.Queries, r *sql.Report) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		r.Unchecked("durability and rights", err)
		return
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, q["settings"])
	if err != nil {
		r.Unchecked("the server's settings", err)
		return
	}
	type pair struct{ Name, Value string }
	pairs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pair])
	if err != nil {
		r.Unchecked("the server's settings", err)
		return
	}
	settings := map[string]string{}
	for _, s := range pairs {
		settings[s.Name] = s.Value
	}
	r.Version = "PostgreSQL " + settings["server_version"]
	durability(settings, r)
	p.checkSession(settings, r)
	r.Clock(ctx, func(ctx context.Context) (micros int64, err error) {
		err = conn.QueryRow(ctx, q["clock"]).Scan(&micros)
		return micros, err
	})
	p.ownTables(ctx, conn.Conn(), q, settings, r)
}

// durability judges the loss in a crash of the server's host.
func durability(s map[string]string, r *sql.Report) {
	if n, err := strconv.Atoi(s["server_version_num"]); err == nil && n < minPostgresN {
		r.TooOld(s["server_version"], "PostgreSQL "+strconv.Itoa(minPostgres))
	}
	if s["recovery"] == "true" || s["transaction_read_only"] == "on" {
		r.Add(finding.SeverityError, "the server is read-only: a standby, or default_transaction_read_only is on", sql.FailsForNow,
			"put the primary into the dsn: name all hosts, and target_session_attrs=read-write")
	}
	if s["fsync"] == "off" {
		r.Add(finding.SeverityError, "fsync is off",
			"after a crash of its host the whole database may be unreadable, with "+sql.GoneForGood,
			"ALTER SYSTEM SET fsync = on, and reload; then make sure that the data is sound (pg_amcheck)")
	}
	if s["full_page_writes"] == "off" {
		r.Add(finding.SeverityWarning, "full_page_writes is off",
			"a page that is half written when the power fails stays damaged, unless the file system writes pages whole (ZFS does)",
			"ALTER SYSTEM SET full_page_writes = on, and reload")
	}
	if c := s["synchronous_commit"]; c == "off" {
		r.Add(finding.SeverityError, "synchronous_commit is off in baton's session, although it asks for on: a pooler drops what "+
			"clients ask for",
			"a crash of the server loses the last half second of "+sql.GoneForGood,
			"ALTER ROLE … SET synchronous_commit = on, or let the pooler pass startup parameters on")
	}
	if s["synchronous_standby_names"] == "" && s["standbys"] != "0" && s["recovery"] != "true" {
		r.Add(finding.SeverityWarning, fmt.Sprintf("its %s standbys are asynchronous", s["standbys"]),
			"when one of them takes over, the last of the "+sql.GoneForGood+" may be missing there",
			"set synchronous_standby_names, if that loss is not acceptable")
	}
	if s["data_checksums"] == "off" {
		r.Add(finding.SeverityInfo, "data checksums are off", "pages that a disk has spoilt are not noticed when they are read",
			"pg_checksums --enable, while the server is down")
	}
	if e := s["server_encoding"]; e != "" && e != "UTF8" {
		r.Add(finding.SeverityInfo, "the database's encoding is "+e, "texts with characters that it lacks become dead letters",
			"make a database with ENCODING UTF8")
	}
}

// checkSession checks that the settings of our sessions are in force.
func (p *postgres) checkSession(s map[string]string, r *sql.Report) {
	wanted := map[string]string{
		"lock_timeout": sql.Millis(p.limits.Lock), "statement_timeout": sql.Millis(p.limits.Statement),
		"idle_in_transaction_session_timeout": sql.Millis(p.limits.Idle),
	}
	var lost []string
	for name, want := range wanted {
		if s[name] != want {
			lost = append(lost, fmt.Sprintf("%s is %s ms instead of %s", name, s[name], want))
		}
	}
	if slices.Sort(lost); len(lost) > 0 {
		r.Add(finding.SeverityWarning, "the session's limits are not what baton asks for: "+strings.Join(lost, ", "), sql.HoldsUp,
			"let the pooler pass startup parameters on, or connect without it")
	}
}

func (p *postgres) ownTables(ctx context.Context, conn *pgx.Conn, q sql.Queries, s map[string]string, r *sql.Report) {
	rows, err := conn.Query(ctx, q["own_tables"])
	if err != nil {
		r.Unchecked("the rights to baton's tables", err)
		return
	}
	type own struct {
		Name        string
		There       bool
		Persistence string
		Policies    bool
		Lacking     []string
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[own])
	if err != nil {
		r.Unchecked("the rights to baton's tables", err)
		return
	}
	missing := 0
	for _, t := range tables {
		if !t.There {
			missing++
			continue
		}
		r.Denied(t.Name, t.Lacking, fmt.Sprintf("GRANT %s ON %s TO this user", strings.Join(t.Lacking, ", "), t.Name))
		checkKind(r, t.Name, t.Persistence, t.Policies)
	}
	if missing > 0 && s["may_create"] != "true" {
		where := fmt.Sprintf("schema %q", s["schema"])
		if s["schema"] == "" {
			where = "no schema of the search_path exists"
		}
		r.Add(finding.SeverityError, "this user may not create baton's tables in "+where, sql.FailsForNow,
			"CREATE SCHEMA baton AUTHORIZATION this user, and ALTER ROLE … SET search_path = baton, public; or GRANT CREATE, USAGE ON "+
				"SCHEMA … TO this user")
	}
}

// checkKind adds findings of unlogged tables and of row security.
func checkKind(r *sql.Report, table, persistence string, policies bool) {
	if persistence == "u" {
		r.Add(finding.SeverityError, "table "+table+" is UNLOGGED", "a crash of the server empties it: "+sql.GoneForGood,
			"ALTER TABLE "+table+" SET LOGGED")
	}
	if policies {
		r.Add(finding.SeverityWarning, "row-level security hides rows of table "+table+" from this user",
			"rows that it may not see cannot be changed or deleted: they become dead letters, or stay as they were",
			"let a policy allow it all rows, or ALTER ROLE … BYPASSRLS")
	}
}

func (p *postgres) InspectTable(ctx context.Context, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		r.Unchecked("its table", err)
		return
	}
	defer conn.Release()
	name := t.Plan.Table.Name
	var persistence string
	var rules, policies bool
	var triggers []string
	if err := conn.QueryRow(ctx, q["target"], name).Scan(&persistence, &rules, &policies, &triggers); err != nil {
		r.Unchecked("table "+name, err)
		return
	}
	checkKind(r, name, persistence, policies)
	if rules {
		r.Add(finding.SeverityError, "table "+name+" has rules", "PostgreSQL refuses INSERT … ON CONFLICT there: every batch fails",
			"drop the rules; a trigger can do the same")
	}
	r.Triggers(name, triggers)
	p.grants(ctx, conn.Conn(), q, t, r)
	p.unique(ctx, conn.Conn(), q, t, r)
}

func (p *postgres) grants(ctx context.Context, conn *pgx.Conn, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	name := t.Plan.Table.Name
	rights, columns := t.Needs()
	rows, err := conn.Query(ctx, q["grants"], name, rights, columns)
	if err != nil {
		r.Unchecked("the rights to table "+name, err)
		return
	}
	lacking := map[string][]string{}
	var right, column string
	if _, err := pgx.ForEachRow(rows, []any{&right, &column}, func() error {
		lacking[right] = append(lacking[right], quote.Ident(column))
		return nil
	}); err != nil {
		r.Unchecked("the rights to table "+name, err)
		return
	}
	var all, grants []string
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		if of, ok := lacking[right]; ok {
			all = append(all, right)
			if right != "DELETE" {
				right += " (" + strings.Join(of, ", ") + ")"
			}
			grants = append(grants, right)
		}
	}
	r.Denied(name, all, fmt.Sprintf("GRANT %s ON %s TO this user", strings.Join(grants, ", "), name))
}

func (p *postgres) unique(ctx context.Context, conn *pgx.Conn, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	rows, err := conn.Query(ctx, q["unique"], t.Plan.Table.Name)
	if err != nil {
		r.Unchecked("the unique indexes of table "+t.Plan.Table.Name, err)
		return
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sql.UniqueIndex, error) {
		var u sql.UniqueIndex
		var partial bool
		var whole []string
		err := row.Scan(&u.Name, &partial, &u.Columns, &whole)
		if u.Plain = !partial && len(whole) == len(u.Columns); u.Plain {
			u.Columns = whole
		}
		return u, err
	})
	if err != nil {
		r.Unchecked("the unique indexes of table "+t.Plan.Table.Name, err)
		return
	}
	r.OtherUnique(t.Plan, all, finding.SeverityInfo, "")
}
