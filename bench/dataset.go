package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisstore"
)

// dataset is one kind of data: in Redis, in a table, and in memory.
type dataset struct {
	job     string
	table   string
	create  func(engine) string
	seed    func(e engine, n int) string
	written string // holds for a row once it has been written, and not before

	// load puts n rows into Redis, none of them pending.
	load func(c redis.Conn, n int) error
	// change makes n rows pending.
	change func(c redis.Conn, n int) error
	// pending are the keys that change wrote to.
	pending string
	source  func(s *redisstore.Store, inputs []string) (flush.Source, error)
	inputs  flush.Inputs
	mapping flush.MappingSpec

	// memory is the same n rows as columns, in the order of ids.
	memory func(ids []int64) []column
}

// column is one column of rows that lie in memory.
type column struct {
	name  string
	kind  byte // 'k'ey, 't'ext, 'i'nteger, 's'een: a time
	add   bool // add to what is there, instead of replacing it
	ints  []int64
	texts []string
	times []time.Time
}

// at is the value in row i, for database/sql.
func (c *column) at(i int) any {
	switch c.kind {
	case 't':
		return c.texts[i]
	case 's':
		return c.times[i]
	}
	return c.ints[i]
}

// inKeyOrder are the ids from 1 to n.
func inKeyOrder(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	return ids
}

// asTheyArrive are the same ids in the order in which changes come in: none. It
// is the same disorder every time.
func asTheyArrive(n int) []int64 {
	ids := inKeyOrder(n)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// user is a row of about 150 bytes in 6 columns.
type user struct {
	name, email, bio string
	visits           int64
	seen             time.Time
}

const bioLength = 80

func userOf(id int64) user {
	var bio strings.Builder
	for seed := uint64(id); bio.Len() < bioLength; {
		seed = seed*6364136223846793005 + 1442695040888963407
		bio.WriteString(strconv.FormatUint(seed>>8, 36))
	}
	return user{
		name:   fmt.Sprintf("Somebody %07d", id),
		email:  fmt.Sprintf("user%07d@example.com", id),
		bio:    bio.String()[:bioLength],
		visits: id*7 + 1,
		seen:   time.Unix(1_700_000_000+id, 0).UTC(),
	}
}

const (
	userKey     = "user:<id>"
	userChanged = "changed:user"
	viewsKey    = "views"
)

func users() dataset {
	return dataset{
		job: "users", table: "users",
		create: func(e engine) string {
			return fmt.Sprintf("CREATE TABLE users (id %s, name %s NOT NULL, email %s NOT NULL, bio %s NOT NULL, visits %s NOT NULL, seen %s NOT NULL)",
				e.key, e.text, e.text, e.text, e.integer, e.instant)
		},
		seed: func(e engine, n int) string {
			return fmt.Sprintf("INSERT INTO users SELECT i, 'Nobody 00000000', 'user0000000@example.com', '%s', 0, '2020-01-01 00:00:00' FROM %s",
				strings.Repeat("x", bioLength), e.series(n))
		},
		written: "visits = id * 7 + 1 AND name <> 'Nobody 00000000'",
		load: func(c redis.Conn, n int) error {
			return pipelined(c, n, func(i int) (string, []any) {
				u := userOf(int64(i) + 1)
				return "HSET", []any{"user:" + strconv.Itoa(i+1), "name", u.name, "email", u.email, "bio", u.bio,
					"visits", u.visits, "seen", u.seen.Format(time.RFC3339)}
			})
		},
		change: func(c redis.Conn, n int) error {
			return pipelined(c, n, func(i int) (string, []any) { return "SADD", []any{userChanged, i + 1} })
		},
		pending: userChanged,
		source: func(s *redisstore.Store, inputs []string) (flush.Source, error) {
			return redisstore.NewHashes(s, redisstore.HashesOptions{Job: "users", Key: userKey, Changed: userChanged, Inputs: inputs})
		},
		inputs:  flush.Inputs{Names: []string{"id"}, Fields: true},
		mapping: flush.MappingSpec{Table: "users", Key: []string{"id"}},
		memory: func(ids []int64) []column {
			out := []column{{name: "id", kind: 'k', ints: ids}, {name: "name", kind: 't'}, {name: "email", kind: 't'},
				{name: "bio", kind: 't'}, {name: "visits", kind: 'i'}, {name: "seen", kind: 's'}}
			for _, id := range ids {
				u := userOf(id)
				out[1].texts = append(out[1].texts, u.name)
				out[2].texts = append(out[2].texts, u.email)
				out[3].texts = append(out[3].texts, u.bio)
				out[4].ints = append(out[4].ints, u.visits)
				out[5].times = append(out[5].times, u.seen)
			}
			return out
		},
	}
}

// viewsOf is what is added to an article's counter.
func viewsOf(id int64) int64 { return id%97 + 1 }

// articles are rows of the same width, of which only a counter changes.
func articles() dataset {
	return dataset{
		job: "views", table: "articles",
		create: func(e engine) string {
			return fmt.Sprintf("CREATE TABLE articles (id %s, title %s, author %s, body %s, views %s NOT NULL, published %s)",
				e.key, e.text, e.text, e.text, e.integer, e.instant)
		},
		seed: func(e engine, n int) string {
			return fmt.Sprintf("INSERT INTO articles SELECT i, 'Something 00000', 'user0000000@example.com', '%s', 0, '2020-01-01 00:00:00' FROM %s",
				strings.Repeat("x", bioLength), e.series(n))
		},
		written: "views = id % 97 + 1",
		load:    func(redis.Conn, int) error { return nil },
		change: func(c redis.Conn, n int) error {
			return pipelined(c, n, func(i int) (string, []any) {
				return "HINCRBY", []any{viewsKey, i + 1, viewsOf(int64(i) + 1)}
			})
		},
		pending: viewsKey,
		source: func(s *redisstore.Store, inputs []string) (flush.Source, error) {
			return redisstore.NewCounters(s, redisstore.CountersOptions{Job: "views", Key: viewsKey, Inputs: inputs})
		},
		inputs: flush.Inputs{Names: []string{flush.InputField, flush.InputValue}, Ledger: true},
		mapping: flush.MappingSpec{Table: "articles", Key: []string{"id"}, Columns: map[string]flush.ColumnSpec{
			"id": {From: flush.InputField}, "views": {From: flush.InputValue, Op: "add"},
		}},
		memory: func(ids []int64) []column {
			views := make([]int64, len(ids))
			for i, id := range ids {
				views[i] = viewsOf(id)
			}
			return []column{{name: "id", kind: 'k', ints: ids}, {name: "views", kind: 'i', ints: views, add: true}}
		},
	}
}
