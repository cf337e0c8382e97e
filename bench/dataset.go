package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
)

// dataset is one kind of data: in Redis, in a table, and in memory.
type dataset struct {
	name    string
	table   string
	create  func(engine) string
	seed    func(e engine, n int) string
	written string // the condition that a row has been written

	// load puts the rows of ids into Redis without making them pending. It is nil if there is nothing to load.
	load func(c redis.Conn, ids []int64) error
	// change makes rows pending.
	change func(c redis.Conn, ids []int64) error
	// pending lists the keys that change wrote to. It is empty if there are too many keys to list.
	pending []string
	source  source.Options
	mapping mapping.Spec
	naive   naiveWay
	// job is the dataset's part of a configuration file.
	job string

	// memory returns the same rows as columns.
	memory func(ids []int64) []column
}

// sourceOf returns the source of a job that flushes the rows.
func (d dataset) sourceOf(job string, lanes int) (source.Source, error) {
	o := d.source
	o.Job, o.Lanes = job, lanes
	return source.Describe(o)
}

// column is one column of rows that are in memory.
type column struct {
	name  string
	kind  byte // 'k'ey, 't'ext, 'i'nteger, 's'een: a time
	add   bool // add to the value in the row, instead of replacing it
	ints  []int64
	texts []string
	times []time.Time
}

// at returns the value in row i, for database/sql.
func (c *column) at(i int) any {
	switch c.kind {
	case 't':
		return c.texts[i]
	case 's':
		return c.times[i]
	}
	return c.ints[i]
}

// userRows returns the part that all datasets of users have in common.
func userRows() dataset {
	return dataset{
		table: "users",
		create: func(e engine) string {
			return fmt.Sprintf("CREATE TABLE users (id %s, name %s NOT NULL, email %s NOT NULL, bio %s NOT NULL, visits %s NOT NULL, seen %s NOT NULL)",
				e.key, e.text, e.text, e.text, e.integer, e.instant)
		},
		seed: func(e engine, n int) string {
			return fmt.Sprintf("INSERT INTO users SELECT i, 'Nobody 00000000', 'user0000000@example.com', '%s', 0, '2020-01-01 00:00:00' FROM %s",
				strings.Repeat("x", rig.BioLength), e.series(n))
		},
		written: "visits = id * 7 + 1 AND name <> 'Nobody 00000000'",
		mapping: mapping.Spec{Table: "users", Key: []string{"id"}},
		memory: func(ids []int64) []column {
			out := []column{{name: "id", kind: 'k', ints: ids}, {name: "name", kind: 't'}, {name: "email", kind: 't'},
				{name: "bio", kind: 't'}, {name: "visits", kind: 'i'}, {name: "seen", kind: 's'}}
			for _, id := range ids {
				u := rig.UserOf(id)
				out[1].texts = append(out[1].texts, u.Name)
				out[2].texts = append(out[2].texts, u.Email)
				out[3].texts = append(out[3].texts, u.Bio)
				out[4].ints = append(out[4].ints, u.Visits)
				out[5].times = append(out[5].times, u.Seen)
			}
			return out
		},
	}
}

// each returns a function that sends one command for every id.
func each(command func(id int64) (name string, args []any)) func(c redis.Conn, ids []int64) error {
	return func(c redis.Conn, ids []int64) error {
		return rig.Pipelined(c, len(ids), func(i int) (string, []any) { return command(ids[i]) })
	}
}

const viewsKey = "views"

// viewsOf returns the increment of an article's counter.
func viewsOf(id int64) int64 { return id%97 + 1 }

// articles returns a dataset of rows with the same width, in which only a counter changes.
func articles() dataset {
	return dataset{
		name: "counters", table: "articles",
		create: func(e engine) string {
			return fmt.Sprintf("CREATE TABLE articles (id %s, title %s, author %s, body %s, views %s NOT NULL, published %s)",
				e.key, e.text, e.text, e.text, e.integer, e.instant)
		},
		seed: func(e engine, n int) string {
			return fmt.Sprintf("INSERT INTO articles SELECT i, 'Something 00000', 'user0000000@example.com', '%s', 0, '2020-01-01 00:00:00' FROM %s",
				strings.Repeat("x", rig.BioLength), e.series(n))
		},
		written: "views = id % 97 + 1",
		change:  each(func(id int64) (string, []any) { return "HINCRBY", []any{viewsKey, id, viewsOf(id)} }),
		pending: []string{viewsKey},
		source:  source.Options{Type: "counters", Key: viewsKey},
		mapping: mapping.Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{
			"id": {From: row.InputField}, "views": {From: row.InputValue, Op: "add"},
		}},
		naive: naiveCounters,
		job: `
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: {from: $value, op: add}}
`,
		memory: func(ids []int64) []column {
			views := make([]int64, len(ids))
			for i, id := range ids {
				views[i] = viewsOf(id)
			}
			return []column{{name: "id", kind: 'k', ints: ids}, {name: "views", kind: 'i', ints: views, add: true}}
		},
	}
}
