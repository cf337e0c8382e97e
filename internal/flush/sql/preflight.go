package sql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"baton/internal/finding"
	"baton/internal/flush/row"
)

// PreflightTable is a table of a job, with the operations of the job.
type PreflightTable struct {
	Job                    string
	Plan                   *row.Plan
	Insert, Update, Delete bool
}

// Preflight checks for faults that can lose data or stop every flush: the server's durability, and the rights to baton's own tables. It
// writes nothing and ends with ctx. A failed check is a finding, too. usable is false if checks of tables would fail as well. created:
// all jobs that write there make their tables themselves.
func (s *Store) Preflight(ctx context.Context, created bool) (findings []finding.Finding, usable bool) {
	r := &Report{subject: fmt.Sprintf("database %q", s.name), Created: created}
	if s.database.Absent(r) {
		return r.findings, false
	}
	if err := s.Ping(ctx); err != nil {
		r.Add(finding.SeverityError, fmt.Sprintf("it does not answer: %v", err),
			"nothing is flushed; what changes meanwhile waits in Redis",
			"start it, or correct its dsn or its firewall")
		return r.findings, false
	}
	s.inspection(r, func(i inspector, q Queries) { i.Inspect(ctx, q, r) })
	if !slices.ContainsFunc(r.findings, func(f finding.Finding) bool { return f.Severity.Rank() < finding.SeverityInfo.Rank() }) {
		r.Add(finding.SeverityOK, "it answers, and keeps confirmed commits: "+r.Version, "", "")
	}
	return r.findings, true
}

// PreflightTable checks the table of a job: rights, triggers, and unique indexes that rows can collide in.
func (s *Store) PreflightTable(ctx context.Context, t PreflightTable) []finding.Finding {
	r := &Report{subject: fmt.Sprintf("job %q", t.Job)}
	s.inspection(r, func(i inspector, q Queries) { i.InspectTable(ctx, q, t, r) })
	return r.findings
}

func (s *Store) inspection(r *Report, look func(inspector, Queries)) {
	q, err := loadQueries(s.fill(), "preflight.sql", s.dialect.Files)
	if err != nil {
		r.Unchecked("it", err)
		return
	}
	look(s.database, q)
	for i, f := range r.findings {
		r.findings[i].What = s.shown(f.What)
	}
}

// inspector has the checks of one dialect.
type inspector interface {
	Inspect(ctx context.Context, q Queries, r *Report)
	InspectTable(ctx context.Context, q Queries, t PreflightTable, r *Report)
}

// Report collects findings of one subject at a time.
type Report struct {
	subject  string
	Version  string
	Created  bool // every job that writes there makes its table
	findings []finding.Finding
}

// Add adds a finding about the checked subject.
func (r *Report) Add(severity finding.Severity, what, consequence, remedy string) {
	r.findings = append(r.findings, finding.Finding{Severity: severity, Subject: r.subject, What: what, Consequence: consequence,
		Remedy: remedy})
}

// Unchecked adds the finding of a failed check.
func (r *Report) Unchecked(what string, err error) {
	r.Add(finding.SeverityInfo, fmt.Sprintf("%s could not be checked: %v", what, err), "a fault there shows only at the first flush",
		"let this user read it, or ask as one who may")
}

// TooOld adds the finding of an unsupported version.
func (r *Report) TooOld(found, want string) {
	r.Add(finding.SeverityWarning, fmt.Sprintf("its version is %s; baton is made for %s or newer", found, want),
		"statements may be refused; this version is not tested", "upgrade the server")
}

// UniqueIndex is a unique index in the catalogue.
type UniqueIndex struct {
	Name    string
	Columns []string // as they are shown
	Plain   bool     // whole columns of all rows
}

// foreign are the unique indexes other than those of the job's key.
func foreign(p *row.Plan, all []UniqueIndex) []UniqueIndex {
	var key []string
	for _, k := range p.Key {
		key = append(key, p.Columns[k].Name)
	}
	return slices.DeleteFunc(all, func(u UniqueIndex) bool {
		return u.Plain && len(key) > 0 && sameSet(u.Columns, key)
	})
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// OtherUnique adds findings of unique indexes other than the job's key.
func (r *Report) OtherUnique(p *row.Plan, all []UniqueIndex, severity finding.Severity, how string) {
	var names, columns []string
	for _, u := range foreign(p, all) {
		names = append(names, fmt.Sprintf("%s (%s)", u.Name, strings.Join(u.Columns, ", ")))
		columns = append(columns, u.Columns...)
	}
	switch {
	case len(names) == 0:
	case len(p.Key) == 0:
		r.Add(finding.SeverityInfo, fmt.Sprintf("table %s has unique indexes, and the job inserts without a dedupe_key: %s", p.Table.Name,
			strings.Join(names, ", ")),
			"a record whose value exists already is refused and becomes a dead letter",
			"set to.dedupe_key to the index that identifies a repeated record")
	default:
		slices.Sort(columns)
		r.Add(severity, fmt.Sprintf("table %s has another unique index than the job's key: %s", p.Table.Name, strings.Join(names, ", ")),
			how+"a row whose value in it another row has, or has not given up yet in the same batch, is refused and becomes a dead letter",
			fmt.Sprintf("make sure that the producers keep %s unique, or drop the index", strings.Join(slices.Compact(columns), ", ")))
	}
}

// Triggers adds findings of triggers: they run for every write, repetitions included.
func (r *Report) Triggers(table string, names []string) {
	if len(names) == 0 {
		return
	}
	r.Add(finding.SeverityInfo, fmt.Sprintf("table %s has triggers: %s", table, strings.Join(names, ", ")),
		"a trigger can change or refuse rows without baton knowing; and a row that did not change may be written again, so what a "+
			"trigger counts or sends can be too much",
		"check that they bear a second write of the same row")
}

// Denied adds findings of missing rights.
func (r *Report) Denied(table string, lacking []string, grant string) {
	if len(lacking) == 0 {
		return
	}
	r.Add(finding.SeverityError, fmt.Sprintf("this user has no right to %s on table %s", strings.Join(lacking, ", "), table),
		"every batch fails; nothing is lost, the changes wait in Redis until its memory is full", grant)
}

// Needs are the rights that a job's statements require, each with its column; the column is "" for a right to the whole table.
func (t PreflightTable) Needs() (rights, columns []string) {
	need := func(right, column string) { rights, columns = append(rights, right), append(columns, column) }
	for i, c := range t.Plan.Columns {
		key := IsKey(t.Plan, i)
		if t.Insert {
			need("INSERT", c.Name)
		}
		if t.Update && !key {
			need("UPDATE", c.Name)
		}
		if key || c.Op == row.OpAdd {
			need("SELECT", c.Name)
		}
	}
	if t.Delete {
		need("DELETE", "")
	}
	return rights, columns
}

// Texts that several findings use. A batch is removed from Redis once the database has reported its commit.
const (
	GoneForGood = "batches that the server has confirmed, and that baton has removed from Redis"
	FailsForNow = "every batch fails; nothing is lost, the changes wait in Redis until its memory is full"
	HoldsUp     = "a leader that freezes inside a transaction, or whose host vanishes, holds its successor up until the server notices " +
		"the dead connection: hours"
)
