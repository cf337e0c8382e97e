package main

import (
	"context"
	"slices"
)

// path is one way from Redis into a database, and the programs that go it.
type path struct {
	name     string
	title    string
	engine   engine
	data     dataset
	programs []program
	least    requirement
}

// required says whether something is required of baton on this path.
func (p path) required() bool { return p.least != requirement{} }

// requirement is what baton must reach; zero is printed and asks for nothing.
type requirement struct {
	ofDirect float64 // of the best direct program's rows a second
	ofNaive  float64 // times the naive program's
}

// role says what a program stands for.
type role string

const (
	roleBaton  role = "baton"
	roleDirect role = "direct"
	roleNaive  role = "naive"
)

// program is one contender on a path.
type program struct {
	name  string
	role  role
	share int  // writes this fraction of the rows; 0: all of them
	redis bool // reads from Redis
	// sorted: its rows come in key order, which is more than a stream of changes gives.
	sorted bool
	// prepare does what happens once in a process' life and returns the work that is
	// measured, which says how many rows it wrote.
	prepare func(ctx context.Context, t task) (work func(context.Context) (int64, error), err error)
}

func (p program) rows(n int) int { return n / max(p.share, 1) }

// paths are all that are measured.
func paths() []path {
	least := requirement{ofDirect: 0.5, ofNaive: 10}
	none := requirement{}
	return []path{
		newPath("hashes-postgres", "hashes → PostgreSQL", postgres(), users(), least, postgresPrograms),
		newPath("counters-postgres", "counters → PostgreSQL", postgres(), articles(), least, postgresPrograms),
		newPath("hashes-mariadb", "hashes → MariaDB", maria(), users(), none, mariaPrograms),
		newPath("counters-mariadb", "counters → MariaDB", maria(), articles(), none, mariaPrograms),
		newPath("hashes-sqlite", "hashes → SQLite", sqlite(), users(), none, sqlitePrograms),
		newPath("counters-sqlite", "counters → SQLite", sqlite(), articles(), none, sqlitePrograms),
	}
}

func newPath(name, title string, e engine, data dataset, least requirement, direct func(dataset) []program) path {
	programs := append([]program{batonProgram(e, data)}, direct(data)...)
	return path{name: name, title: title, engine: e, data: data, least: least,
		programs: append(programs, naiveProgram(e, data))}
}

// find returns the program of a task.
func find(t task) (path, program, bool) {
	for _, p := range paths() {
		i := slices.IndexFunc(p.programs, func(q program) bool { return q.name == t.Program })
		if p.name == t.Path && i >= 0 {
			return p, p.programs[i], true
		}
	}
	return path{}, program{}, false
}
