package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"baton/bench/internal/rig"
)

// gridPrograms returns the fastest known direct writers. They use one connection, and write each batch in the order of the key, as baton
// does.
func gridPrograms(c cell) []program {
	data, e := c.data(), c.engine()
	writer := func(name string, start func(ctx context.Context, dsn string, ids []int64) (func(context.Context) error, error)) program {
		prepare := func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			warm, rows := c.shares(t.Rows)
			write, err := start(ctx, t.DSN, sortedBatches(c.ids(warm + rows)[warm:]))
			return func(ctx context.Context) (int64, error) { return int64(rows), write(ctx) }, err
		}
		return program{name: name, role: roleDirect, data: data, prepare: prepare}
	}
	byRows := func(name string, rows int) program {
		return writer(name, func(ctx context.Context, dsn string, ids []int64) (func(context.Context) error, error) {
			return sqlWriter(ctx, e, data, dsn, rows, gridBatch, ids)
		})
	}
	if e.driver == maria().driver {
		return []program{byRows("1000 rows a statement", 1000)}
	}
	if e.driver == sqlite().driver {
		return []program{byRows("1 row a statement", 1)}
	}
	var out []program
	for _, way := range []postgresWay{{"COPY", gridBatch, copied, upsert}, {"unnest", gridBatch, unnest, upsert}} {
		out = append(out, writer(way.name, func(ctx context.Context, dsn string, ids []int64) (func(context.Context) error, error) {
			return way.writer(ctx, dsn, data, ids)
		}))
	}
	return out
}

// gridContenders returns all programs except baton.
func gridContenders(c cell) []program {
	out := gridPrograms(c)
	if h, ok := tunedHashes(c); ok {
		out = append(out, tuned(c, h))
	}
	return out
}

// findGrid returns the program of a cell.
func findGrid(name, programName string) (program, bool) {
	cells := allCells()
	i := slices.IndexFunc(cells, func(c cell) bool { return c.String() == name })
	if i < 0 {
		return program{}, false
	}
	programs := gridContenders(cells[i])
	j := slices.IndexFunc(programs, func(p program) bool { return p.name == programName })
	if j < 0 {
		return program{}, false
	}
	return programs[j], true
}

// line prints a cell, and reports whether the cell misses its requirements.
func (g *gridRun) line(c cell, programs []program, results map[string][]result) {
	ours := results[batonPlain]
	var best []result
	name := ""
	for _, p := range programs {
		if got := results[p.name]; p.role == roleDirect && (best == nil || rate(got) > rate(best)) {
			best, name = got, p.name
		}
	}
	ratio := rig.Ratio(ours, best, result.perSecond)
	databaseCPU := func(r result) float64 { return r.DatabaseCPU }
	direct, own, database := per100k(best, databaseCPU), per100k(ours, func(r result) float64 { return r.CPU }), per100k(ours, databaseCPU)
	times, multiple := "–", 0.0
	missed := ratio < leastOfDirect
	if direct > 0 { // otherwise the database has no process
		multiple = database / direct
		times = fmt.Sprintf("%.2f", multiple)
		missed = missed || multiple > mostCPU
	}
	g.outcomes = append(g.outcomes, outcome{c, ratio, multiple})
	table := "none"
	if c.table > 0 {
		table = fmt.Sprint(c.table)
	}
	byHand, beside := "–", "–"
	if got := results[tunedName]; got != nil {
		byHand = rig.Thousands(rate(got))
		beside = fmt.Sprintf("%.2f", rig.Ratio(ours, got, result.perSecond))
	}
	mark := ""
	if missed {
		mark = "**MISSED**"
		g.missed = append(g.missed, c.String())
	}
	g.Printf("| %s | %s | %s | %s | %s | %s | %s | %.2f | %s | %.2f | %.2f | %.2f | %s | %s | %s | %s |", c.source, c.engine().title, table, c.order,
		cmp.Or(c.vacuum, "–"), name, rig.Thousands(rate(best)), direct, rig.Thousands(rate(ours)), own, database, ratio, times, byHand, beside, mark)
}

// per100k returns the cost of 100,000 rows over all rounds, because one round is too short for the system's clock ticks.
func per100k(rounds []result, of func(result) float64) float64 {
	var sum float64
	var rows int64
	for _, r := range rounds {
		sum += of(r)
		rows += r.Rows
	}
	return sum / float64(rows) * 1e5
}
