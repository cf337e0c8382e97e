package main

import (
	"context"
	"slices"
	"strings"
)

// path is one way from Redis into a database, with the programs that use this way.
type path struct {
	name     string
	title    string
	engine   engine
	programs []program
	wants    []want
	optional bool // the path is measured only if it is named
}

// role is the kind of a program.
type role string

const (
	roleBaton  role = "baton"
	roleDirect role = "direct"
	roleNaive  role = "naive"
	roleTuned  role = "tuned"
)

// program is one contender on a path.
type program struct {
	name  string
	role  role
	data  dataset
	share int  // writes this fraction of the rows; 0: all of them
	redis bool // reads from Redis
	// These fields are for a direct program: whether its rows come in key order, which a stream of changes does not have, the number of
	// its connections, and the number of rows in a transaction.
	sorted       bool
	lanes, batch int
	// prepare does the work that a process does once, and returns the measured work, which returns the number of written rows.
	prepare func(ctx context.Context, t task) (work func(context.Context) (int64, error), err error)
}

func (p program) rows(n int) int { return n / max(p.share, 1) }

// These are the names of baton's programs.
const (
	batonPlain     = "baton"
	batonSorted    = "baton, in key order"
	batonUnsorted  = "baton, in random order"
	batonTwoSorted = "baton, in key order, 2 lanes"
	batonTwo       = "baton, in random order, 2 lanes"
	batonPlainTwo  = "baton, 2 lanes"
)

// want is a printed ratio of two numbers of rows per second, with its requirement.
type want struct {
	ours, of func(program) bool // the best matching program counts
	least    float64            // 0: no requirement
	text     string             // with %.2f for the ratio
}

func called(name string) func(program) bool {
	return func(p program) bool { return p.name == name }
}

// arriving reports whether a direct program writes like baton with one lane: with the same batches, on one connection, and rows in the
// order of arrival.
func arriving(p program) bool {
	return p.role == roleDirect && !p.sorted && p.lanes == 1 && p.batch <= 5_000
}

func isNaive(p program) bool { return p.role == roleNaive }

// usual returns the two requirements of every path.
func usual(ours string, ofDirect, ofNaive float64) []want {
	return []want{
		{called(ours), arriving, ofDirect, "%.2f of the best direct write path, rows as they arrive"},
		{called(ours), isNaive, ofNaive, "%.1f × the naive program"},
	}
}

// better returns comparisons with further programs: in key order, with larger batches, on more connections.
func better(ours string) []want {
	return []want{
		{called(ours), func(p program) bool { return p.role == roleDirect && p.sorted }, 0, "%.2f of the best direct write path in key order"},
		{called(ours), func(p program) bool { return p.role == roleDirect && p.batch > 5_000 }, 0, "%.2f of the best direct write path with batches of 20,000"},
		{called(ours), func(p program) bool { return p.role == roleDirect && p.lanes > 1 }, 0, "%.2f of the best direct write path on two connections"},
	}
}

// inOrder returns the requirements for hashes, whose order baton can choose.
func inOrder(ofDirect, ofNaive, ofSorted float64) []want {
	all := usual(batonUnsorted, ofDirect, ofNaive)
	return append(all, want{called(batonSorted), arriving, ofSorted, "in key order: %.2f of the best direct write path, rows as they arrive"})
}

// lanes returns the requirements for a second lane.
func lanes(least float64) []want {
	return []want{
		{called(batonTwo), called(batonUnsorted), least, "2 lanes: %.2f × one, in random order"},
		{called(batonTwoSorted), called(batonSorted), 0, "2 lanes: %.2f × one, in key order"},
		{called(batonTwo), func(p program) bool { return p.role == roleDirect && p.lanes > 1 }, 0, "2 lanes: %.2f of the direct write path on two connections, rows as they arrive"},
	}
}

// paths returns all paths.
func paths() []path {
	return []path{
		hashes("hashes-postgres", postgres(), 2, postgresPrograms,
			slices.Concat(inOrder(0.85, 12, 1.3), lanes(1.3), better(batonSorted))),
		simple("counters-postgres", "counters → PostgreSQL", postgres(), articles(), postgresPrograms,
			append(usual(batonPlain, 0.85, 12), better(batonPlain)...)),
		simple("list-postgres", "list → PostgreSQL", postgres(), listed(), fewPostgresPrograms, usual(batonPlain, 0.8, 10)),
		simple("stream-postgres", "stream → PostgreSQL", postgres(), streamed(), fewPostgresPrograms, usual(batonPlain, 0.8, 10)),
		simple("scan-postgres", "scan → PostgreSQL", postgres(), scannedUsers(), fewPostgresPrograms, usual(batonPlain, 0.8, 10)),
		hashes("hashes-mariadb", maria(), 2, mariaPrograms, slices.Concat(inOrder(0.85, 8, 0), lanes(1.3))),
		simple("counters-mariadb", "counters → MariaDB", maria(), articles(), mariaPrograms, usual(batonPlain, 0.85, 12)),
		hashes("hashes-sqlite", sqlite(), 1, sqlitePrograms, inOrder(0.85, 8, 3)),
		twoLanes("counters", postgres(), articles()), twoLanes("list", postgres(), listed()), twoLanes("stream", postgres(), streamed()),
		twoLanes("counters", maria(), articles()), twoLanes("list", maria(), listed()), twoLanes("stream", maria(), streamed()),
		optional(simple("counters-sqlite", "counters → SQLite", sqlite(), articles(), sqlitePrograms, usual(batonPlain, 0, 0))),
	}
}

// simple returns a path whose rows come in the order of the source.
func simple(name, title string, e engine, data dataset, direct func(dataset) []program, wants []want) path {
	programs := append([]program{batonProgram(e, batonPlain, data, 1)}, direct(data)...)
	return path{name: name, title: title, engine: e, wants: wants, programs: append(programs, naiveProgram(e, data))}
}

// twoLanes returns a path that compares two lanes with one lane.
func twoLanes(source string, e engine, data dataset) path {
	return path{
		name: "lanes-" + source + "-" + strings.ToLower(e.title), title: source + " → " + e.title + ", one lane and two", engine: e,
		programs: []program{batonProgram(e, batonPlain, data, 1), batonProgram(e, batonPlainTwo, data, 2)},
		wants:    []want{{called(batonPlainTwo), called(batonPlain), 1.3, "2 lanes: %.2f × one"}},
	}
}

// hashes returns a path with rows that baton can sort, because the keys in Redis contain the table's key, and with rows that baton cannot
// sort. most is the highest number of lanes.
func hashes(name string, e engine, most int, direct func(dataset) []program, wants []want) path {
	programs := []program{batonProgram(e, batonUnsorted, members(), 1), batonProgram(e, batonSorted, users(), 1)}
	if most > 1 {
		programs = append(programs, batonProgram(e, batonTwo, members(), most), batonProgram(e, batonTwoSorted, users(), most))
	}
	programs = append(programs, direct(users())...)
	return path{name: name, title: "hashes → " + e.title, engine: e, wants: wants,
		programs: append(programs, naiveProgram(e, users()))}
}

func optional(p path) path {
	p.optional = true
	return p
}

// find returns the program of a task.
func find(t task) (program, bool) {
	if name, ok := strings.CutPrefix(t.Path, gridPart+"/"); ok {
		return findGrid(name, t.Program)
	}
	for _, p := range paths() {
		i := slices.IndexFunc(p.programs, func(q program) bool { return q.name == t.Program })
		if p.name == t.Path && i >= 0 {
			return p.programs[i], true
		}
	}
	return program{}, false
}
