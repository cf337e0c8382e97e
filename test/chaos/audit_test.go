package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"baton/internal/testsupport"
)

// finding is a key whose row is not what the writers expect.
type finding struct {
	table, id    string
	want, got    string
	lost, double int64 // counters: increments missing, or too many; rows: lost is 1
}

// verdict is what the auditor found.
type verdict struct {
	lost, double int64
	rows         int // rows compared
	findings     []finding
}

// querier is the database, as far as the auditor needs it.
type querier interface {
	Query(ctx context.Context, query string, args ...any) ([][]string, error)
}

// audit compares every table with what the writers expect, both ways.
func audit(ctx context.Context, db querier, want *state) (verdict, error) {
	var v verdict
	for _, table := range slices.Sorted(maps.Keys(counterTables)) {
		query := "SELECT id, " + counterTables[table] + " FROM " + table
		if strings.HasPrefix(counterTables[table], "count") {
			query += " GROUP BY id"
		}
		got, err := db.Query(ctx, query)
		if err != nil {
			return v, err
		}
		if err := v.counters(table, want.counters[table], got); err != nil {
			return v, err
		}
	}
	for _, table := range rowTables {
		got, err := db.Query(ctx, "SELECT id, name, version, email FROM "+table)
		if err != nil {
			return v, err
		}
		v.table(table, want.rows[table], got)
	}
	dead, err := db.Query(ctx, "SELECT job, id, error || ': ' || record FROM baton_dead_letter")
	if err != nil {
		return v, err
	}
	for _, d := range dead {
		v.add(finding{table: "dead letters of " + d[0], id: d[1], want: "none", got: d[2], lost: 1})
	}
	return v, nil
}

func (v *verdict) counters(table string, want map[string]int64, got [][]string) error {
	found := make(map[string]int64, len(got))
	for _, r := range got {
		n, err := strconv.ParseInt(r[1], 10, 64)
		if err != nil {
			return fmt.Errorf("table %s, id %s: %w", table, r[0], err)
		}
		found[r[0]] = n
		if _, expected := want[r[0]]; !expected {
			v.add(finding{table: table, id: r[0], want: "no row", got: r[1], double: max(n, 1)})
		}
	}
	for id, n := range want {
		if g := found[id]; g != n {
			v.add(finding{table: table, id: id, want: fmt.Sprint(n), got: fmt.Sprint(g), lost: max(n-g, 0), double: max(g-n, 0)})
		}
	}
	v.rows += len(got)
	return nil
}

func (v *verdict) table(table string, want map[string]row, got [][]string) {
	found := make(map[string]bool, len(got))
	for _, r := range got {
		found[r[0]] = true
		w, expected := want[r[0]]
		if w.email == "" {
			w.email = testsupport.NULL
		}
		is := row{r[1], r[2], r[3]}
		switch {
		case !expected:
			v.add(finding{table: table, id: r[0], want: "no row", got: fmt.Sprintf("%q", is), lost: 1})
		case is != w:
			v.add(finding{table: table, id: r[0], want: fmt.Sprintf("%q", w), got: fmt.Sprintf("%q", is), lost: 1})
		}
	}
	for id, w := range want {
		if !found[id] {
			v.add(finding{table: table, id: id, want: fmt.Sprintf("%q", w), got: "no row", lost: 1})
		}
	}
	v.rows += len(got)
}

func (v *verdict) add(f finding) {
	v.lost += f.lost
	v.double += f.double
	v.findings = append(v.findings, f)
}

// explain tells the findings, with every change that the triggers have noted and the
// ledger's row of the same transaction.
func (v *verdict) explain(ctx context.Context, db querier) string {
	const most = 12
	var b strings.Builder
	tables := map[string]int{}
	for _, f := range v.findings {
		tables[f.table]++
	}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(&b, "%s: %d keys are wrong\n", table, tables[table])
	}
	for _, f := range v.findings[:min(most, len(v.findings))] {
		fmt.Fprintf(&b, "\n%s %q: want %s, got %s\n", f.table, f.id, f.want, f.got)
		changes, err := db.Query(ctx, `
			SELECT c.at AT TIME ZONE 'UTC', c.tx, c.value, l.batch_id, l.part, l.rows
			FROM chaos_changes c LEFT JOIN baton_ledger l ON l.xmin::text = c.tx
			WHERE c.tab = $1 AND c.id = $2 ORDER BY c.at`, f.table, f.id)
		if err != nil {
			fmt.Fprintf(&b, "  (its changes cannot be read: %v)\n", err)
		}
		for _, c := range changes {
			fmt.Fprintf(&b, "  %s  tx %s  value %s  batch %s part %s of %s rows\n", c[0], c[1], c[2], c[3], c[4], c[5])
		}
	}
	return b.String()
}
