package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
)

// PreflightTable is a table that a job writes to, and what it does there.
type PreflightTable struct {
	Job                    string
	Plan                   *flush.Plan
	Insert, Update, Delete bool
}

// Preflight looks for what can lose data, or keep every flush from working: the
// server's durability, and the rights to baton's own tables. It writes nothing and
// ends with ctx; what it could not look at is a finding, too. usable is false if there
// is no point in asking for tables.
func (s *Store) Preflight(ctx context.Context) (findings []flush.Finding, usable bool) {
	r := &report{subject: fmt.Sprintf("database %q", s.name)}
	if file, ok := s.database.(interface{ missing(*report) bool }); ok && file.missing(r) {
		return r.findings, false
	}
	if err := s.Ping(ctx); err != nil {
		r.add(flush.SeverityError, fmt.Sprintf("it does not answer: %v", err), "nothing is flushed; what changes meanwhile waits in Redis",
			"start it, or correct its dsn or its firewall")
		return r.findings, false
	}
	s.inspection(r, func(i inspector, q queries) { i.inspect(ctx, q, r) })
	if !slices.ContainsFunc(r.findings, func(f flush.Finding) bool { return f.Severity.Rank() < flush.SeverityInfo.Rank() }) {
		r.add(flush.SeverityOK, "it answers, and keeps what it confirms: "+r.version, "", "")
	}
	return r.findings, true
}

// PreflightTable looks at the table of a job: rights, what else happens to its rows,
// and by what they can collide.
func (s *Store) PreflightTable(ctx context.Context, t PreflightTable) []flush.Finding {
	r := &report{subject: fmt.Sprintf("job %q", t.Job)}
	s.inspection(r, func(i inspector, q queries) { i.inspectTable(ctx, q, t, r) })
	return r.findings
}

func (s *Store) inspection(r *report, look func(inspector, queries)) {
	q, err := loadQueries(s.driver+"_preflight", s.fill())
	if err != nil {
		r.unchecked("it", err)
		return
	}
	if i, ok := s.database.(inspector); ok {
		look(i, q)
	}
}

// inspector is what a kind of database can tell of its ground.
type inspector interface {
	inspect(ctx context.Context, q queries, r *report)
	inspectTable(ctx context.Context, q queries, t PreflightTable, r *report)
}

// report collects findings of one subject at a time.
type report struct {
	subject  string
	version  string
	findings []flush.Finding
}

func (r *report) add(severity flush.Severity, what, consequence, remedy string) {
	r.findings = append(r.findings, flush.Finding{Severity: severity, Subject: r.subject, What: what, Consequence: consequence, Remedy: remedy})
}

// unchecked says what could not be looked at.
func (r *report) unchecked(what string, err error) {
	r.add(flush.SeverityInfo, fmt.Sprintf("%s could not be checked: %v", what, err), "what is wrong there shows at the first flush", "let this user read it, or ask as one who may")
}

// tooOld complains of a server that is older than what is supported.
func (r *report) tooOld(found, want string) {
	r.add(flush.SeverityWarning, fmt.Sprintf("its version is %s; baton is made for %s or newer", found, want), "statements may be refused, and nobody has tested what happens then", "upgrade the server")
}

// uniqueIndex is a unique index as the catalogue tells it.
type uniqueIndex struct {
	name    string
	columns []string // as they are shown
	plain   bool     // whole columns of all rows
}

// foreign are the unique indexes that rows are not found by.
func foreign(p *flush.Plan, all []uniqueIndex) []uniqueIndex {
	var key []string
	for _, k := range p.Key {
		key = append(key, p.Columns[k].Name)
	}
	return slices.DeleteFunc(all, func(u uniqueIndex) bool {
		return u.plain && len(key) > 0 && sameSet(u.columns, key)
	})
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// otherUnique tells of indexes by which a row can collide with another than its own.
func (r *report) otherUnique(p *flush.Plan, all []uniqueIndex, severity flush.Severity, how string) {
	var names, columns []string
	for _, u := range foreign(p, all) {
		names = append(names, fmt.Sprintf("%s (%s)", u.name, strings.Join(u.columns, ", ")))
		columns = append(columns, u.columns...)
	}
	switch {
	case len(names) == 0:
	case len(p.Key) == 0:
		r.add(flush.SeverityInfo, fmt.Sprintf("table %s has unique indexes, and the job inserts without a dedupe_key: %s", p.Table.Name, strings.Join(names, ", ")),
			"a record whose value is there already is refused and becomes a dead letter", "set to.dedupe_key to the index that tells a record that came twice")
	default:
		slices.Sort(columns)
		r.add(severity, fmt.Sprintf("table %s has another unique index than the job's key: %s", p.Table.Name, strings.Join(names, ", ")),
			how+"a row whose value in it another row has, or has not given up yet in the same batch, is refused and becomes a dead letter",
			fmt.Sprintf("make sure that the producers keep %s unique, or drop the index", strings.Join(slices.Compact(columns), ", ")))
	}
}

// triggers tells of triggers: they see what baton writes, as often as it does.
func (r *report) triggers(table string, names []string) {
	if len(names) == 0 {
		return
	}
	r.add(flush.SeverityInfo, fmt.Sprintf("table %s has triggers: %s", table, strings.Join(names, ", ")),
		"a trigger can change or refuse rows without baton knowing; and a row that did not change may be written again, so what a trigger counts or sends can be too much",
		"check that they bear a second write of the same row")
}

// denied tells of rights that lack.
func (r *report) denied(table string, lacking []string, grant string) {
	if len(lacking) == 0 {
		return
	}
	r.add(flush.SeverityError, fmt.Sprintf("this user has no right to %s on table %s", strings.Join(lacking, ", "), table),
		"every batch fails; nothing is lost, the changes wait in Redis until its memory is full", grant)
}

// needs are the rights that a job's statements take, each with its column; the
// column is "" for a right to the whole table.
func (t PreflightTable) needs() (rights, columns []string) {
	need := func(right, column string) { rights, columns = append(rights, right), append(columns, column) }
	for i, c := range t.Plan.Columns {
		key := isKey(t.Plan, i)
		if t.Insert {
			need("INSERT", c.Name)
		}
		if t.Update && !key {
			need("UPDATE", c.Name)
		}
		if key || c.Op == flush.OpAdd {
			need("SELECT", c.Name)
		}
	}
	if t.Delete {
		need("DELETE", "")
	}
	return rights, columns
}
