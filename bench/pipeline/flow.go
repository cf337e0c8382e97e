package main

import (
	"strconv"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// flow is one way from Redis into PostgreSQL.
type flow struct {
	name, title string
	source      string // where the entries are: flowStream, flowList or flowScan
	target      target // of the speed test
	// empty means that the table has no rows at first.
	empty bool
	// once means that a program reads all keys once, and is started for every backlog.
	once bool
	// entry is the command that puts the row of an id into Redis.
	entry func(id int64) (command string, args []any)
}

// target is a table of users.
type target struct {
	table, constraint string
	upsert            bool // otherwise rows are inserted
}

// These are the keys in Redis.
const (
	streamKey = "changes"
	listKey   = "events"
	scanned   = "user:"
)

const (
	flowStream = "stream"
	flowList   = "list"
	flowScan   = "scan"
	// flowGrowing is a stream into an empty table.
	flowGrowing = "stream-empty"
)

// bare returns a table without a unique index, so that duplicates are visible.
func bare() target { return target{table: "audit"} }

func flows() []flow {
	users := target{table: "users", constraint: "PRIMARY KEY", upsert: true}
	streamed := func(id int64) (string, []any) {
		return "XADD", append([]any{streamKey, "*", "id", id}, rig.UserOf(id).Fields()...)
	}
	return []flow{
		{name: flowStream, source: flowStream, title: "stream → PostgreSQL, upserts of existing rows", target: users, entry: streamed},
		{name: flowGrowing, source: flowStream, title: "stream → PostgreSQL, upserts into an empty table", target: users, empty: true,
			entry: streamed},
		{name: flowList, source: flowList, title: "list → PostgreSQL, inserts",
			target: target{table: "events", constraint: "PRIMARY KEY"},
			entry:  func(id int64) (string, []any) { return "RPUSH", []any{listKey, rig.UserOf(id).JSON(id)} }},
		{name: flowScan, source: flowScan, title: "scan of JSON texts → PostgreSQL, upserts of existing rows", once: true, target: users,
			entry: func(id int64) (string, []any) {
				return "SET", []any{scanned + strconv.FormatInt(id, 10), rig.UserOf(id).JSON(id)}
			}},
	}
}

// lay puts the rows of ids into Redis, in the order of ids.
func (f flow) lay(c redis.Conn, ids []int64) error {
	return rig.Pipelined(c, len(ids), func(i int) (string, []any) { return f.entry(ids[i]) })
}
