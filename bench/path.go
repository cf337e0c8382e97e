package main

import (
	"context"
	"slices"
	"strings"
)

// path is one way from Redis into a database, with the programs for it.
type path struct {
	name     string
	title    string
	engine   engine
	programs []program
	wants    []want
	optional bool // measured only if it is named
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
	// Of a direct program: its rows come in key order, which a stream of changes does not have; the connections that it writes on, and
	// its rows in a transaction.
	sorted       bool
	lanes, batch int
	// prepare does the work of a process that happens once, and returns the measured work, which returns the number of written rows.
	prepare func(ctx context.Context, t task) (work func(context.Context) (int64, error), err error)
}

func (p program) rows(n int) int { return n / max(p.share, 1) }

// The names of baton's programs.
const (
	batonPlain     = "baton"
	batonSorted    = "baton, in key order"
	batonUnsorted  = "baton, in random order"
	batonTwoSorted = "baton, in key order, 2 lanes"
	batonTwo       = "baton, in random order, 2 lanes"
	batonPlainTwo  = "baton, 2 lanes"
)

// want is a printed ratio of rows a second, with its requirement.
type want struct {
	ours, of func(program) bool // the best one of those counts
	least    float64            // 0: no requirement
	text     string             // with %.2f for the ratio
}

func called(name string) func(program) bool {
	return func(p program) bool { return p.name == name }
}

// arriving are the direct programs that are like baton with one lane: its batches, its
// one connection, rows as they arrive.
func arriving(p program) bool {
	return p.role == roleDirect && !p.sorted && p.lanes == 1 && p.batch <= 5_000
}

func isNaive(p program) bool { return p.role == roleNaive }

// usual are the two requirements of every path.
func usual(ours string, ofDirect, ofNaive float64) []want {
	return []want{
		{called(ours), arriving, ofDirect, "%.2f of the best direct write path, rows as they arrive"},
		{called(ours), isNaive, ofNaive, "%.1f × the naive program"},
	}
}

// better compares with further programs: key order, larger batches, more connections.
func better(ours string) []want {
	return []want{
		{called(ours), func(p program) bool { return p.role == roleDirect && p.sorted }, 0, "%.2f of the best direct write path in key order"},
		{called(ours), func(p program) bool { return p.role == roleDirect && p.batch > 5_000 }, 0, "%.2f of the best direct write path with batches of 20,000"},
		{called(ours), func(p program) bool { return p.role == roleDirect && p.lanes > 1 }, 0, "%.2f of the best direct write path on two connections"},
	}
}

// inOrder are the requirements of hashes, where baton can choose the order.
func inOrder(ofDirect, ofNaive, ofSorted float64) []want {
	all := usual(batonUnsorted, ofDirect, ofNaive)
	return append(all, want{called(batonSorted), arriving, ofSorted, "in key order: %.2f of the best direct write path, rows as they arrive"})
}

// lanes are the requirements of a second lane.
func lanes(least float64) []want {
	return []want{
		{called(batonTwo), called(batonUnsorted), least, "2 lanes: %.2f × one, in random order"},
		{called(batonTwoSorted), called(batonSorted), 0, "2 lanes: %.2f × one, in key order"},
		{called(batonTwo), func(p program) bool { return p.role == roleDirect && p.lanes > 1 }, 0, "2 lanes: %.2f of the direct write path on two connections, rows as they arrive"},
	}
}

// paths are all paths.
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

// simple is a path whose rows come in the order of the source.
func simple(name, title string, e engine, data dataset, direct func(dataset) []program, wants []want) path {
	programs := append([]program{batonProgram(e, batonPlain, data, 1)}, direct(data)...)
	return path{name: name, title: title, engine: e, wants: wants, programs: append(programs, naiveProgram(e, data))}
}

// twoLanes is a path that compares two lanes with one.
func twoLanes(source string, e engine, data dataset) path {
	return path{
		name: "lanes-" + source + "-" + strings.ToLower(e.title), title: source + " → " + e.title + ", one lane and two", engine: e,
		programs: []program{batonProgram(e, batonPlain, data, 1), batonProgram(e, batonPlainTwo, data, 2)},
		wants:    []want{{called(batonPlainTwo), called(batonPlain), 1.3, "2 lanes: %.2f × one"}},
	}
}

// hashes is a path with rows that baton can sort, if their keys contain the table's, and with rows that it cannot, with up to that many
// lanes.
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
