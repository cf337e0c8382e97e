package sql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/finding"
	"baton/internal/flush/row"
)

// PreflightTable is the table of a job, with the operations that the job needs there.
type PreflightTable struct {
	Job                    string
	Plan                   *row.Plan
	Insert, Update, Delete bool
	Keep                   bool // the job keeps deleted rows, so it reads whole rows and locks them
}

// Preflight checks for faults that can lose data or stop every flush: the server's durability, and the rights to baton's own tables.
// Preflight writes nothing and ends with ctx. If a check itself fails, Preflight adds a finding about that. The result usable is false if
// checks of the jobs' tables would fail as well. The argument created says that all jobs of this database create their own tables.
func (s *Store) Preflight(ctx context.Context, created bool) (findings []finding.Finding, usable bool) {
	r := &Report{subject: fmt.Sprintf("database %q", s.name), Created: created}
	if s.database.Absent(r) {
		return r.findings, false
	}
	if err := s.Ping(ctx); err != nil {
		r.Add(finding.Away, fmt.Sprintf("it does not answer: %v", err),
			"nothing is flushed; the changes wait in Redis",
			"start the database, or correct its dsn or its firewall")
		return r.findings, false
	}
	s.inspection(r, func(i inspector, q Queries) { i.Inspect(ctx, q, r) })
	if !slices.ContainsFunc(r.findings, func(f finding.Finding) bool { return f.Severity.Rank() < finding.SeverityInfo.Rank() }) {
		r.Add(finding.DatabaseFits, "it answers, and keeps confirmed commits: "+r.Version, "", "")
	}
	return r.findings, true
}

// PreflightTable checks the table of a job: rights, triggers, and unique indexes in which rows may conflict.
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

// inspector contains the checks of one dialect.
type inspector interface {
	Inspect(ctx context.Context, q Queries, r *Report)
	InspectTable(ctx context.Context, q Queries, t PreflightTable, r *Report)
}

// Report collects findings about one subject at a time.
type Report struct {
	subject  string
	Version  string
	Created  bool // every job of this database creates its own table
	findings []finding.Finding
}

// Add adds a finding about the subject that is being checked.
func (r *Report) Add(kind finding.Kind, what, consequence, remedy string) {
	r.findings = append(r.findings, kind.Of(r.subject, what, consequence, remedy))
}

// Unchecked adds a finding that says that a check could not be done.
func (r *Report) Unchecked(what string, err error) {
	r.Add(finding.UncheckedDatabase, fmt.Sprintf("%s could not be checked: %v", what, err), "a fault there shows only at the first flush",
		"grant this user the right to read it, or run doctor with a user that has this right")
}

// TooOld adds a finding about a server whose version is too old for baton.
func (r *Report) TooOld(found, want string) {
	r.Add(finding.OldVersion, fmt.Sprintf("its version is %s; baton is made for %s or newer", found, want),
		"statements may be refused; this version is not tested", "upgrade the server")
}

// UniqueIndex is a unique index, as the database's catalogue describes it.
type UniqueIndex struct {
	Name    string
	Columns []string // as the catalogue shows them
	Plain   bool     // the index covers whole columns of all rows
}

// foreign returns the unique indexes other than the index of the job's key.
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

// OtherUnique adds findings about unique indexes other than the index of the job's key.
func (r *Report) OtherUnique(p *row.Plan, all []UniqueIndex, severity finding.Severity, how string) {
	var names, columns []string
	for _, u := range foreign(p, all) {
		names = append(names, fmt.Sprintf("%s (%s)", u.Name, strings.Join(u.Columns, ", ")))
		columns = append(columns, u.Columns...)
	}
	switch {
	case len(names) == 0:
	case len(p.Key) == 0:
		r.Add(finding.UniqueWithoutDedupe,
			fmt.Sprintf("table %s has unique indexes, and the job inserts without a dedupe_key: %s", p.Table.Name,
				strings.Join(names, ", ")),
			"the database refuses a record whose value exists already, and the record becomes a dead letter",
			"set to.dedupe_key to the columns of the index that identifies a repeated record")
	default:
		slices.Sort(columns)
		r.Add(finding.OtherUnique.As(severity), fmt.Sprintf("table %s has another unique index than the job's key: %s", p.Table.Name,
			strings.Join(names, ", ")),
			how+"if another row has the same value in that index, also if the same batch changes that other row later, the "+
				"database refuses "+
				"the new row, and it becomes a dead letter",
			fmt.Sprintf("make sure that the producers keep %s unique, or drop the index", strings.Join(slices.Compact(columns), ", ")))
	}
}

// Triggers adds findings about triggers, because a trigger runs for every write. If a batch is applied again, its triggers also run again.
func (r *Report) Triggers(table string, names []string) {
	if len(names) == 0 {
		return
	}
	r.Add(finding.Triggers, fmt.Sprintf("table %s has triggers: %s", table, strings.Join(names, ", ")),
		"a trigger can change or refuse rows, and baton does not notice it. Baton may also write an unchanged row again, so a trigger "+
			"that counts or sends something can do it twice",
		"make sure that a second write of the same row does no harm in the triggers")
}

// Denied adds findings about missing rights.
func (r *Report) Denied(table string, lacking []string, grant string) {
	if len(lacking) == 0 {
		return
	}
	r.Add(finding.NoRightToTable, fmt.Sprintf("this user has no right to %s on table %s", strings.Join(lacking, ", "), table),
		"every batch fails; nothing is lost, the changes wait in Redis until its memory is full", grant)
}

// clockTolerance is the smallest difference between the server's clock and this host's clock that is reported.
const clockTolerance = time.Second

// Clock compares the server's clock with the clock of this host. The function ask returns the server's time in microseconds since 1970.
func (r *Report) Clock(ctx context.Context, ask func(ctx context.Context) (micros int64, err error)) {
	sent := time.Now()
	micros, err := ask(ctx)
	if err != nil {
		r.Unchecked("its clock", err)
		return
	}
	trip := time.Since(sent)
	apart := time.UnixMicro(micros).Sub(sent.Add(trip / 2)).Round(100 * time.Millisecond)
	if apart.Abs()-trip/2 <= clockTolerance {
		return
	}
	how := "ahead of"
	if apart < 0 {
		how = "behind"
	}
	r.Add(finding.Clock, fmt.Sprintf("its clock is %v %s this host's", apart.Abs(), how),
		"nothing is lost, because neither leases nor fences use these clocks. But times that the database sets differ from times that "+
			"producers and baton set", "run chrony or another NTP client on both hosts")
}

// Needs returns the rights that a job's statements need, each with its column. The column is "" for a right to the whole table.
func (t PreflightTable) Needs() (rights, columns []string) {
	needed := map[string]bool{}
	need := func(right, column string) {
		if of := right + " " + column; !needed[of] {
			needed[of] = true
			rights, columns = append(rights, right), append(columns, column)
		}
	}
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
	if t.Keep {
		for _, c := range t.Plan.Table.Columns {
			need("SELECT", c.Name)
		}
		if !slices.Contains(rights, "UPDATE") { // one column suffices to lock a row
			need("UPDATE", t.Plan.Table.Columns[0].Name)
		}
	}
	return rights, columns
}

// These texts say what happens because of a fault, and occur in several findings. Each batch is removed from Redis once the database has
// reported its commit.
const (
	GoneForGood = "batches that the server has confirmed, and that baton has removed from Redis"
	FailsForNow = "every batch fails; nothing is lost, the changes wait in Redis until its memory is full"
	HoldsUp     = "if a leader freezes inside a transaction, or its host vanishes, the next leader must wait until the server notices " +
		"the dead connection, which can take hours"
)
