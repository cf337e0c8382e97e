package mysql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"baton/internal/finding"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

func (d database) Inspect(ctx context.Context, q sql.Queries, r *sql.Report) {
	type pair struct{ name, value string }
	pairs, err := stdsql.Collect(ctx, d.Pool, q["settings"], func(scan func(...any) error) (pair, error) {
		var p pair
		err := scan(&p.name, &p.value)
		return p, err
	})
	if err != nil {
		r.Unchecked("the server's settings", err)
		return
	}
	s := map[string]string{}
	for _, p := range pairs {
		s[strings.ToLower(p.name)] = p.value
	}
	r.Version = "MySQL " + s["version"]
	if strings.Contains(s["version"], "MariaDB") {
		r.Version = s["version"]
	}
	checkVersion(s["version"], r)
	durability(s, r)
	writable(s, r)
	r.Clock(ctx, func(ctx context.Context) (micros int64, err error) {
		err = d.Pool.QueryRowContext(ctx, q["clock"]).Scan(&micros)
		return micros, err
	})
	d.ownTables(ctx, q, r)
}

var versionNumber = regexp.MustCompile(`^(?:5\.5\.5-)?(\d+)\.(\d+)`)

func checkVersion(version string, r *sql.Report) {
	m := versionNumber.FindStringSubmatch(version)
	if m == nil {
		return
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	switch maria := strings.Contains(version, "MariaDB"); {
	case maria && (major < 10 || major == 10 && minor < 5):
		r.TooOld(version, "MariaDB 10.5")
	case !maria && major < 8:
		r.TooOld(version, "MySQL 8")
	}
}

// durability checks which commits are lost in a crash of the server or its host.
func durability(s map[string]string, r *sql.Report) {
	switch f := s["innodb_flush_log_at_trx_commit"]; f {
	case "", "1", "3": // MariaDB's 3 syncs twice per commit
	default:
		crash := "a crash of its host"
		if f == "0" {
			crash = "a crash of the server"
		}
		r.Add(finding.LogNotFlushed, "innodb_flush_log_at_trx_commit is "+f, crash+" loses the last second, or more, of "+sql.GoneForGood,
			"SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in my.cnf")
	}
	if n, ok := s["sync_binlog"]; ok && on(s["log_bin"]) && n != "1" {
		r.Add(finding.BinlogNotSynced, "the binary log is on, and sync_binlog is "+n,
			"recovery rolls back transactions that the binary log on disk does not have, so a crash of the host loses the last of the "+
				""+sql.GoneForGood+", and the data of replicas differs from then on",
			"SET GLOBAL sync_binlog = 1, and the same in my.cnf")
	}
	if w, ok := s["innodb_doublewrite"]; ok && (strings.EqualFold(w, "DETECT_ONLY") ||
		!on(w) && !strings.EqualFold(w, "DETECT_AND_RECOVER")) {
		r.Add(finding.NoDoublewrite, "innodb_doublewrite is "+w,
			"a page that is half written when the power fails stays damaged, unless the file system writes pages whole (ZFS does)",
			"set innodb_doublewrite = ON in my.cnf, and restart the server")
	}
	if strings.EqualFold(s["binlog_format"], "STATEMENT") && on(s["log_bin"]) {
		r.Add(finding.StatementBinlog, "binlog_format is STATEMENT",
			"InnoDB refuses to write at baton's isolation level, READ COMMITTED: every batch fails",
			"SET GLOBAL binlog_format = 'ROW' (or MIXED), and the same in my.cnf")
	}
	several := "nodes that write through different servers do not see each other's fence, so a former leader could still commit"
	if on(s["wsrep_on"]) {
		r.Add(finding.Galera, "the server is part of a Galera cluster",
			"nodes of baton may write through different servers, because each batch also writes the job's fence: if a batch "+
				"and a take-over "+
				"meet, only the earlier one commits. "+
				"Lanes of a job commit one after the other. If a proxy spreads one node's connections over servers, its transactions undo "+
				"each other's work", "let each node write to one server only")
	}
	if s["group_replication_group_name"] != "" && !on(s["group_replication_single_primary_mode"]) {
		r.Add(finding.SeveralPrimaries, "the server is part of a group with several primaries", several,
			"let all nodes of baton write to the same server, or use single-primary mode")
	}
}

// writable checks that the server accepts writes, and that the session accepts our settings.
func writable(s map[string]string, r *sql.Report) {
	for _, name := range []string{"super_read_only", "read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"} {
		if on(s[name]) {
			r.Add(finding.ReadOnly, name+" is on: the server is read-only, because it is a replica, or an operator froze it",
				sql.FailsForNow+". A user with more rights could write to a replica, but the primary would not get these rows",
				"put the primary into the dsn; or SET GLOBAL "+name+" = 0 when the maintenance is over")
			return
		}
	}
	if s["autocommit"] != "" && !on(s["autocommit"]) {
		r.Add(finding.LostSession, "the session's settings are not what baton asks for: a proxy drops them", sql.HoldsUp,
			"connect without the proxy, or disable the proxy's multiplexing for this user")
	}
}

func on(value string) bool {
	switch strings.ToUpper(value) {
	case "ON", "1", "YES", "TRUE":
		return true
	}
	return false
}

func (d database) ownTables(ctx context.Context, q sql.Queries, r *sql.Report) {
	there, err := stdsql.Collect(ctx, d.Pool, q["own_tables"], stdsql.ScanName)
	if err != nil {
		r.Unchecked("the rights to baton's tables", err)
		return
	}
	const all = 8 // the names in own_tables
	if len(there) < all {
		if err := d.prepares(ctx, q["own_create"]); err != nil {
			denied(r, "may not create baton's tables", err,
				"GRANT CREATE, INDEX, ALTER, SELECT, INSERT, UPDATE, DELETE ON its database TO this user")
		}
		return
	}
	var refusals []error
	for text := range strings.SplitSeq(q["own_rights"], ";") {
		if err := d.prepares(ctx, strings.TrimSpace(text)); err != nil {
			refusals = append(refusals, err)
		}
	}
	if len(refusals) > 0 {
		denied(r, "lacks rights to baton's tables", errors.Join(refusals...),
			"GRANT SELECT, INSERT, UPDATE, DELETE ON its database TO this user")
	}
}

// prepares makes the server prepare a statement without executing it. The server then checks the rights for the statement.
func (d database) prepares(ctx context.Context, text string) error {
	statement, err := d.Pool.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return statement.Close()
}

// denied adds findings about missing rights to the report. The errors of the server name the rights.
func denied(r *sql.Report, what string, err error, remedy string) {
	var texts []string
	for _, one := range unjoin(err) {
		refusal, ok := errors.AsType[*mysql.MySQLError](one)
		if !ok || !deniedNumber(refusal.Number) {
			r.Unchecked("the rights of this user", one)
			return
		}
		texts = append(texts, refusal.Message)
	}
	r.Add(finding.Denied, "this user "+what+": "+strings.Join(texts, "; "), sql.FailsForNow, remedy)
}

// deniedNumber reports whether an error number of the server means that access to a database, a table, a column or a statement is denied.
func deniedNumber(n uint16) bool {
	return n == 1044 || n == 1142 || n == 1143 || n == 1227 || n == 1370
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func (d database) InspectTable(ctx context.Context, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	name := t.Plan.Table.Name
	var refusals []error
	for _, text := range statements(t) {
		if err := d.prepares(ctx, text); err != nil {
			refusals = append(refusals, err)
		}
	}
	if len(refusals) > 0 {
		denied(r, "lacks rights to table "+name, errors.Join(refusals...),
			fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO this user", name))
	}
	schema, table := quote.Schema(name)
	if names, err := stdsql.Collect(ctx, d.Pool, q["triggers"], stdsql.ScanName, schema, table); err != nil {
		r.Unchecked("the triggers of table "+name, err)
	} else {
		r.Triggers(name, names)
	}
	d.narrow(ctx, q, t, r)
	indexes, err := stdsql.IndexesOf(ctx, d.DB, q["indexes"], schema, table)
	if err != nil {
		r.Unchecked("the unique indexes of table "+name, err)
		return
	}
	r.OtherUnique(t.Plan, indexes, finding.SeverityWarning,
		"INSERT … ON DUPLICATE KEY UPDATE reacts to every unique index, and would change another row, so baton makes the database refuse "+
			"such a row: ")
}

// narrow adds a finding if the character set of a text column lacks characters. For example utf8, which means utf8mb3, has no emoji.
func (d database) narrow(ctx context.Context, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	name := t.Plan.Table.Name
	schema, table := quote.Schema(name)
	type text struct{ column, charset string }
	all, err := stdsql.Collect(ctx, d.Pool, q["narrow"], func(scan func(...any) error) (found text, err error) {
		return found, scan(&found.column, &found.charset)
	}, schema, table)
	if err != nil {
		r.Unchecked("the character sets of table "+name, err)
		return
	}
	var narrow []string
	for _, c := range t.Plan.Columns {
		for _, found := range all {
			if c.Kind == row.KindText && c.Name == found.column {
				narrow = append(narrow, fmt.Sprintf("%s (%s)", c.Name, found.charset))
			}
		}
	}
	if len(narrow) > 0 {
		r.Add(finding.NarrowColumns, fmt.Sprintf("columns of table %s cannot hold every character, an emoji say: %s", name,
			strings.Join(narrow, ", ")),
			"a record with such a character becomes a dead letter",
			fmt.Sprintf("ALTER TABLE %s CONVERT TO CHARACTER SET utf8mb4", quote.Table(name)))
	}
}

// statements returns statements that need the same rights as a flush.
func statements(t sql.PreflightTable) []string {
	table := quote.Table(t.Plan.Table.Name)
	var names, key, set []string
	for i, c := range t.Plan.Columns {
		name := quote.Ident(c.Name)
		names = append(names, name)
		if sql.IsKey(t.Plan, i) {
			key = append(key, name)
		} else {
			set = append(set, name+" = VALUES("+name+")")
		}
	}
	if len(set) == 0 && len(key) > 0 {
		set = []string{key[0] + " = " + key[0]}
	}
	var all []string
	if t.Insert {
		text := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + sql.Repeat("?", len(names)) + ")"
		if t.Update && len(key) > 0 {
			text += " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
		}
		all = append(all, text)
	}
	if len(key) > 0 {
		where := " WHERE " + strings.Join(key, " = ? AND ") + " = ?"
		all = append(all, "SELECT "+strings.Join(key, ", ")+" FROM "+table+where)
		if t.Delete {
			all = append(all, "DELETE FROM "+table+where)
		}
		if t.Keep {
			all = append(all, "SELECT * FROM "+table+where+" FOR UPDATE")
		}
	}
	return all
}
