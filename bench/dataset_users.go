package main

import (
	"strconv"

	"baton/bench/internal/rig"
	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
)

const (
	userKey       = "user:<id>"
	userChanged   = "changed:user"
	memberKey     = "member:<ref>"
	memberChanged = "changed:member"
	streamKey     = "stream:users"
	listKey       = "list:users"
)

// hset returns the command that writes a user's hash.
func hset(id int64) (string, []any) {
	return "HSET", append([]any{"user:" + strconv.FormatInt(id, 10)}, rig.UserOf(id).Fields()...)
}

// users returns a dataset of hashes with an index of the changed ids. baton sorts the whole index, so that rows reach the database in the
// order of the key.
func users() dataset {
	d := userRows()
	d.name = "hashes"
	d.load = each(hset)
	d.change = each(func(id int64) (string, []any) { return "SADD", []any{userChanged, id} })
	d.pending = []string{userChanged}
	d.source = source.Options{Type: "hashes", Key: userKey, Changed: userChanged}
	d.naive = naiveHashes
	d.job = `
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: users, key: [id]}
`
	return d
}

// members returns a dataset of the same rows under keys that do not contain the table's key, which is a field of the hash. So it is
// useless to sort the index, and the rows reach the database in random order, as they do whenever changes are written in the order of
// their arrival.
func members() dataset {
	d := users()
	d.name = "hashes under other keys"
	ref := func(id int64) int64 { return id * 2654435761 % (1 << 32) } // an odd factor: all values differ
	d.load = each(func(id int64) (string, []any) {
		return "HSET", append([]any{"member:" + strconv.FormatInt(ref(id), 10), "id", id}, rig.UserOf(id).Fields()...)
	})
	d.change = each(func(id int64) (string, []any) { return "SADD", []any{memberChanged, ref(id)} })
	d.pending = []string{memberChanged}
	// Without its hash, a member's row is unknown.
	d.source = source.Options{Type: "hashes", Key: memberKey, Changed: memberChanged, OnMissing: string(mapping.MissingIgnore)}
	d.job = `
      from: {type: hashes, key: "member:<ref>", changed: "changed:member", on_missing: ignore}
      to: {database: main, table: users, key: [id]}
`
	return d
}

// streamed returns a dataset of entries in a stream, with a field for each column.
func streamed() dataset {
	d := userRows()
	d.name = "stream"
	d.change = each(func(id int64) (string, []any) {
		return "XADD", append([]any{streamKey, "*", "id", id}, rig.UserOf(id).Fields()...)
	})
	d.pending = []string{streamKey}
	d.source = source.Options{Type: "stream", Key: streamKey}
	d.naive = naiveStream
	d.job = `
      from: {type: stream, key: "stream:users"}
      to: {database: main, table: users, key: [id]}
`
	return d
}

// listed returns a dataset of JSON objects in a list.
func listed() dataset {
	d := userRows()
	d.name = "list"
	d.change = each(func(id int64) (string, []any) { return "RPUSH", []any{listKey, rig.UserOf(id).JSON(id)} })
	d.pending = []string{listKey}
	d.source = source.Options{Type: "list", Key: listKey}
	d.naive = naiveList
	d.job = `
      from: {type: list, key: "list:users"}
      to: {database: main, table: users, key: [id]}
`
	return d
}

// scannedUsers returns a dataset of hashes without an index.
func scannedUsers() dataset {
	d := userRows()
	d.name = "scan"
	d.change = each(hset)
	d.source = source.Options{Type: "scan", Key: userKey, Value: "hash"}
	d.naive = naiveHashes
	d.job = `
      from: {type: scan, key: "user:<id>", value: hash}
      to: {database: main, table: users, key: [id]}
`
	return d
}

// capturedUsers returns a dataset of hashes that the application writes, without an index.
func capturedUsers() dataset {
	d := userRows()
	d.name = "capture"
	d.change = each(hset)
	d.source = source.Options{Type: "capture", Key: userKey, Value: "hash"}
	d.job = `
      from: {type: capture, key: "user:<id>"}
      to: {database: main, table: users, key: [id]}
`
	return d
}
