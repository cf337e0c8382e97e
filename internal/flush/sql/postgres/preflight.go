package postgres

import (
	"context"
	"fmt"
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
	err := p.within(ctx, func(tx pgx.Tx) error {
		p.inspect(ctx, tx, q, r)
		return nil
	})
	if err != nil {
		r.Unchecked("durability and rights", err)
	}
}

func (p *postgres) inspect(ctx context.Context, tx pgx.Tx, q sql.Queries, r *sql.Report) {
	rows, err := tx.Query(ctx, q["settings"])
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
	if p.pooled.Load() {
		r.Version += ", through a pooler"
	}
	durability(settings, r)
	r.Clock(ctx, func(ctx context.Context) (micros int64, err error) {
		err = tx.QueryRow(ctx, q["clock"]).Scan(&micros)
		return micros, err
	})
	p.ownTables(ctx, tx, q, settings, r)
}

// durability checks which commits the server may lose if its host crashes.
func durability(s map[string]string, r *sql.Report) {
	if n, err := strconv.Atoi(s["server_version_num"]); err == nil && n < minPostgresN {
		r.TooOld(s["server_version"], "PostgreSQL "+strconv.Itoa(minPostgres))
	}
	switch {
	case s["recovery"] == "true":
		r.Add(finding.Standby, "the server is read-only: it is a standby", sql.FailsForNow,
			"put the primary into the dsn: name all hosts, and target_session_attrs=read-write")
	case s["transaction_read_only"] == "on":
		r.Add(finding.ReadOnlyUser, "it is read-only for this user: default_transaction_read_only is on", sql.FailsForNow,
			"ALTER DATABASE … RESET default_transaction_read_only, or ALTER ROLE …; unless an operator froze it for a move or a dump")
	}
	if s["fsync"] == "off" {
		r.Add(finding.NoFsync, "fsync is off",
			"after a crash of its host the whole database may be unreadable, with "+sql.GoneForGood,
			"ALTER SYSTEM SET fsync = on, and reload; then check the data (pg_amcheck)")
	}
	if s["full_page_writes"] == "off" {
		r.Add(finding.NoFullPageWrites, "full_page_writes is off",
			"a page that is half written when the power fails stays damaged, unless the file system writes pages whole (ZFS does)",
			"ALTER SYSTEM SET full_page_writes = on, and reload")
	}
	if s["synchronous_standby_names"] == "" && s["standbys"] != "0" && s["recovery"] != "true" {
		r.Add(finding.AsyncStandbys, fmt.Sprintf("its %s standbys are asynchronous", s["standbys"]),
			"when one of them takes over, the last of the "+sql.GoneForGood+" may be missing there",
			"set synchronous_standby_names, if that loss is not acceptable")
	}
	if s["data_checksums"] == "off" {
		r.Add(finding.NoChecks, "data checksums are off", "the server does not notice when it reads a page that the disk has damaged",
			"pg_checksums --enable, while the server is down")
	}
	switch e := s["server_encoding"]; e {
	case "", "UTF8":
	case "SQL_ASCII":
		r.Add(finding.NoChecks, "the database's encoding is SQL_ASCII: it checks no text",
			"a program that reads the rows in another encoding sees other characters", "create a database with ENCODING UTF8")
	default:
		r.Add(finding.NarrowEncoding, "the database's encoding is "+e+": it cannot hold every character, an emoji say",
			"a record with a character that the encoding lacks becomes a dead letter", "create a database with ENCODING UTF8")
	}
}

func (p *postgres) ownTables(ctx context.Context, tx pgx.Tx, q sql.Queries, s map[string]string, r *sql.Report) {
	rows, err := tx.Query(ctx, q["own_tables"])
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
		r.Add(finding.NoRightToCreate, "this user may not create baton's tables in "+where, sql.FailsForNow,
			"CREATE SCHEMA baton AUTHORIZATION this user, and ALTER ROLE … SET search_path = baton, public; or GRANT CREATE, USAGE ON "+
				"SCHEMA … TO this user")
	}
}

// checkKind adds findings about unlogged tables and about row security.
func checkKind(r *sql.Report, table, persistence string, policies bool) {
	if persistence == "u" {
		r.Add(finding.Unlogged, "table "+table+" is UNLOGGED", "a crash of the server empties it: "+sql.GoneForGood,
			"ALTER TABLE "+table+" SET LOGGED")
	}
	if policies {
		r.Add(finding.RowSecurity, "row-level security hides rows of table "+table+" from this user",
			"baton cannot change or delete rows that this user may not see: their records become dead letters, or the rows stay unchanged",
			"create a policy that allows this user all rows, or ALTER ROLE … BYPASSRLS")
	}
}

func (p *postgres) InspectTable(ctx context.Context, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	err := p.within(ctx, func(tx pgx.Tx) error {
		p.inspectTable(ctx, tx, q, t, r)
		return nil
	})
	if err != nil {
		r.Unchecked("its table", err)
	}
}

func (p *postgres) inspectTable(ctx context.Context, tx pgx.Tx, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	name := t.Plan.Table.Name
	var persistence string
	var rules, policies bool
	var triggers []string
	if err := tx.QueryRow(ctx, q["target"], name).Scan(&persistence, &rules, &policies, &triggers); err != nil {
		r.Unchecked("table "+name, err)
		return
	}
	checkKind(r, name, persistence, policies)
	if rules {
		r.Add(finding.Rules, "table "+name+" has rules", "PostgreSQL refuses INSERT … ON CONFLICT there: every batch fails",
			"drop the rules, and use triggers instead")
	}
	r.Triggers(name, triggers)
	p.grants(ctx, tx, q, t, r)
	p.sequences(ctx, tx, q, t, r)
	p.unique(ctx, tx, q, t, r)
}

func (p *postgres) grants(ctx context.Context, tx pgx.Tx, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	name := t.Plan.Table.Name
	rights, columns := t.Needs()
	rows, err := tx.Query(ctx, q["grants"], name, rights, columns)
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

func (p *postgres) unique(ctx context.Context, tx pgx.Tx, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	rows, err := tx.Query(ctx, q["unique"], t.Plan.Table.Name)
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

// sequences adds a finding about sequences that provide the defaults of an inserted row, if this user may not use them.
func (p *postgres) sequences(ctx context.Context, tx pgx.Tx, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	if !t.Insert {
		return
	}
	var written []string
	for _, c := range t.Plan.Columns {
		written = append(written, c.Name)
	}
	rows, err := tx.Query(ctx, q["sequences"], t.Plan.Table.Name, written)
	if err != nil {
		r.Unchecked("the sequences of table "+t.Plan.Table.Name, err)
		return
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.Unchecked("the sequences of table "+t.Plan.Table.Name, err)
		return
	}
	for _, name := range names {
		r.Add(finding.NoRightToSequence, "this user has no right to USAGE on sequence "+name+", which gives each new row a default",
			"every batch with a new row fails; nothing is lost, the changes wait in Redis until its memory is full",
			"GRANT USAGE ON SEQUENCE "+name+" TO this user")
	}
}
