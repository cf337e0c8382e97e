package config

import (
	"errors"
	"strings"
	"testing"
)

// job returns a valid configuration with one job, which the tests then change. The key name: is in line 4.
func job(extra string) string {
	return `node: {id: n}
databases: {main: {driver: sqlite, dsn: x}}
jobs:
  - name: a
    schedule: "@hourly"
    flush:
      from: {type: hashes, key: "u:<id>", changed: c}
      to: {database: main, table: t, key: [id]}
` + extra
}

// spoil replaces a part of the valid configuration.
func spoil(old, by string) string {
	if !strings.Contains(job(""), old) {
		panic("nothing to spoil: " + old)
	}
	return strings.Replace(job(""), old, by, 1)
}

const countersFrom = `from: {type: counters, key: v}`
const hashesFrom = `from: {type: hashes, key: "u:<id>", changed: c}`

// wantProblems fails the test unless a file with the text results in exactly these problems.
func wantProblems(t *testing.T, text, lines string) {
	t.Helper()
	_, err := read(t, text, nil, nil)
	want := "baton.yaml:" + strings.ReplaceAll(lines, "\n", "\nbaton.yaml:")
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, ok := errors.AsType[Problems](err); !ok {
		t.Errorf("not Problems: %T", err)
	}
}

func TestBadInputIsReportedAtItsPlaceWithTheRemedy(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nested", "node:\n  id: " + strings.Repeat("[", 60_000), "2:37: nested deeper than 32 levels: is this baton's configuration, and is a bracket or the indentation wrong?"},
		{"not yaml", "node: {id: n\n", "1:7: not YAML: could not find flow mapping end token '}'"},
		{"not a mapping", "- a\n", "1:1: write key: value pairs here"},
		{"two documents", "node: {id: n}\n---\nnode: {id: m}\n", "3:5: the file has a second YAML document, but baton reads only one"},
		{"unknown key", "nod: {id: n}\n", "1:1: nod: unknown key; did you mean node?"},
		{"unknown key without a near miss", "log:\n  colour: red\n", "2:3: log.colour: unknown key; choose one of level, format"},
		{"duplicate", "log:\n  level: info\n  level: warn\n", "3:3: log.level: the key is set twice, first in line 2; remove one"},
		{"duplicate database", "databases:\n  a: {driver: sqlite, dsn: x}\n  a: {driver: sqlite, dsn: x}\n", "3:3: databases.a: the key is set twice, first in line 2; remove one"},
		{"bad duration", "election:\n  ttl: 10\n", `2:3: election.ttl: bad duration "10": write a number and a unit, for example 500ms, 10s or 1m30s`},
		{"zero duration", "election: {drain: 0s}\n", `1:12: election.drain: bad duration "0s": must be more than 0; leave it out for the default`},
		{"duration of the wrong kind", "election: {ttl: [1s]}\n", "1:12: election.ttl: write one duration here, for example 10s"},
		{"text of the wrong kind", "redis: {url: {a: b}}\n", "1:9: redis.url: write one text here; if the text has a colon, put it in quotes"},
		{"mapping in place of an address", "redis: {cluster: [10.0.0.1: 7000]}\n", "1:19: redis.cluster[0]: write one text here; if the text has a colon, put it in quotes"},
		{"schedule without quotes", "jobs:\n  - name: a\n    schedule: */5 1,2 * * *  # often\n", `3:19: a text that begins with * must be in quotes: write schedule: "*/5 1,2 * * *"`},
		{"schedule of stars", "jobs:\n  - name: a\n    schedule: * * * * *\n", `3:23: a text that begins with * must be in quotes: write schedule: "* * * * *"`},
		{"schedule in braces", "jobs:\n  - {name: a, schedule: * * * * *, command: [x]}\n", `2:27: a text that begins with * must be in quotes: write schedule: "* * * * *"`},
		{"schedule with an at", "jobs:\n  - schedule: @every 5m\r\n", `2:15: a text that begins with @ must be in quotes: write schedule: "@every 5m"`},
		{"schedule that may be a secret", "jobs:\n  - schedule: @planted/x\n", `2:15: a text that begins with @ must be in quotes: write schedule: "…"`},
		{"item without quotes", "jobs:\n  - command: [x, @planted]\n", `2:18: a text that begins with @ must be in quotes: write "…"`},
		{"secret without quotes", "redis:\n  password: `planted\n", "2:13: a text that begins with ` must be in quotes: write password: \"…\""},
		{"name of an operator's without quotes", "jobs:\n  - env: {planted: @planted}\n", `2:20: a text that begins with @ must be in quotes: write "…"`},
		{"alias in place of a text", "node:\n  id: *log\n", "2:3: node.id: a text that begins with &, * or ! must be in quotes; anchors, aliases and tags are not supported"},
		{"list of the wrong kind", spoil("key: [id]", "key: id"), "8:38: jobs[0].flush.to.key: write a list here, for example [a, b] or lines that begin with a dash"},
		{"anchor", "node: &n {id: n}\n", "1:1: node: anchors, aliases and tags are not supported; write the value out, or use defaults:"},
		{"merge key", "node:\n  <<: {id: n}\n", "2:3: node.<<: merge keys and complex keys are not supported; write the value out, or use defaults:"},
		{"variable", "redis:\n  password_file: ${NONE}/x\n", "2:3: redis.password_file: environment variable NONE is not set"},
		{"credentials", "redis:\n  password_file: ${CREDENTIALS_DIRECTORY}/x\n", "2:3: redis.password_file: environment variable CREDENTIALS_DIRECTORY is not set; systemd sets it for a unit that has LoadCredential=, elsewhere set it yourself"},

		{"node id", "node: {id: a b}\n", `1:8: node.id: "a b": use letters, digits, dots, dashes and underscores, at most 128 characters`},
		{"short ttl", "election: {ttl: 900ms}\n", "1:12: election.ttl: 900ms is too short; a lease needs at least 1s"},
		{"ratio", "election:\n  ttl: 5s\n  heartbeat_interval: 2s\n", "2:3: election: 2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·2s + 500ms + 1s + 300ms = 5.8s and ttl is 5s; raise ttl, or leave the other settings out, because their defaults fit the ttl"},
		{"rare polls", "election:\n  poll_interval: 31s\n", "2:3: election.poll_interval: 31s: must be at most 30s, because a node that has not registered for a minute counts as gone"},
		{"rare heartbeats", "election: {ttl: 10m, heartbeat_interval: 1m}\n", "1:22: election.heartbeat_interval: 1m0s: must be at most 30s, because a node that has not registered for a minute counts as gone"},
		{"ratio by the drain", "election:\n  drain: 1h\n", "2:3: election: 2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·2s + 1s + 1h0m0s + 350ms = 1h0m5.35s and ttl is 10s; raise ttl, or leave the other settings out, because their defaults fit the ttl"},
		{"ratio on the brink", "election: {heartbeat_interval: 3325ms}\n", "1:12: election: 2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·3.325s + 1s + 2s + 350ms = 10s and ttl is 10s; raise ttl, or leave the other settings out, because their defaults fit the ttl"},
		{"lock key with a space", "election: {lock_key: a b}\n", `1:12: election.lock_key: "a b" has a space or a control character in it`},
		{"lock key with braces", "election: {lock_key: \"a}b\"}\n", `1:12: election.lock_key: "a}b": braces must be one {tag}, for example {shop}:leader`},
		{"listen", "http: {listen: localhost}\n", `1:8: http.listen: "localhost": write host:port, for example 127.0.0.1:9747, or off`},
		{"listen port", "http: {listen: \":99999\"}\n", `1:8: http.listen: ":99999": write host:port, for example 127.0.0.1:9747, or off`},
		{"log level", "log: {level: warm}\n", `1:7: log.level: "warm" is not known here; did you mean warn?`},
		{"log format", "log: {format: pretty}\n", `1:7: log.format: "pretty" is not known here; write text or json`},

		{"database name", "databases: {Main: {driver: sqlite, dsn: x}}\n", "1:13: databases.Main: use lower-case letters, digits, dashes and underscores, at most 63 characters"},
		{"database without a driver", "databases: {m: {dsn: x}}\n", "1:13: databases.m.driver: required; for example postgres"},
		{"mariadb", "databases: {m: {driver: mariadb, dsn: x}}\n", `1:17: databases.m.driver: "mariadb" is not known here; write mysql`},
		{"oracle", "databases: {m: {driver: oracle, dsn: x}}\n", `1:17: databases.m.driver: "oracle" is not known here; write postgres, mysql or sqlite`},
		{"database without a dsn", "databases: {m: {driver: sqlite}}\n", "1:13: databases.m: needs dsn_file (or dsn); for example dsn_file: /etc/baton/m.dsn"},
		{"database with two dsns", "databases: {m: {driver: sqlite, dsn: x, dsn_file: y}}\n", "1:33: databases.m.dsn: dsn_file is set too; keep one of them"},
		{"dsn in the wrong place", "databases:\n  m: postgres://u:secret@h/db\n", "2:3: databases.m: write key: value pairs here"},

		{"default zone", "defaults: {time_zone: Mars}\n", `1:12: defaults.time_zone: "Mars" is not a time zone; write a name such as UTC or Europe/Berlin`},
		{"catch up", "defaults: {catch_up: al}\n", `1:12: defaults.catch_up: "al" is not known here; did you mean all?`},
		{"job name", spoil("name: a", "name: A"), `4:5: jobs[0].name: "A": use lower-case letters, digits and dashes, at most 63 characters`},
		{"job without a name", spoil("name: a", "timeout: 1s"), `4:5: jobs[0].name: required; for example page-views`},
		{"job twice", job("  - name: a\n    schedule: \"@daily\"\n    flush:\n      from: {type: counters, key: k}\n      to: {database: main, table: t, key: [id]}\n      columns: {id: $field, n: $value}\n"), `9:5: jobs[1].name: "a" is the name of jobs[0] too`},
		{"no schedule", spoil(`schedule: "@hourly"`, "timeout: 1s"), `4:5: jobs[0].schedule: required; for example "@every 5s" or "30 2 * * *"`},
		{"bad schedule", spoil(`"@hourly"`, `"61 * * * *"`), `5:5: jobs[0].schedule: minute 61 of UTC does not exist`},
		{"always", strings.Replace(spoil(`"@hourly"`, `"@always"`), hashesFrom, `from: {type: scan, key: "u:<id>"}`, 1), `5:5: jobs[0].schedule: @always waits for work, but only a full pass of this flush shows whether there is work; write how often to make a pass, for example "@every 1m"`},
		{"local zone", job("    time_zone: Local\n"), `9:5: jobs[0].time_zone: Local differs from host to host; write a name such as Europe/Berlin`},
		{"job catch up", job("    catch_up: some\n"), `9:5: jobs[0].catch_up: "some" is not known here; write latest, all or none`},
		{"overlap", job("    overlap: allow\n"), `9:5: jobs[0].overlap: a flush cannot run twice at a time; write forbid, queue_one or replace`},

		{"source without a type", spoil("type: hashes, ", ""), "7:7: jobs[0].flush.from.type: required: counters, hashes, zset, list, stream, scan or capture"},
		{"stream with an index", spoil("type: hashes", "type: stream"), "7:28: jobs[0].flush.from.key: key \"u:<id>\": \"<\" means nothing here: name one key, or shards as [0-15]\n7:43: jobs[0].flush.from.changed: only for counters, hashes or zset; remove it"},
		{"source unknown", spoil("type: hashes", "type: hash"), `7:14: jobs[0].flush.from.type: "hash" is not known here; did you mean hashes?`},
		{"watermark", spoil("type: hashes", "mode: watermark, type: hashes"), "7:14: jobs[0].flush.from.mode: only for counters; remove it"},
		{"watermark with an index", counters("{id: id, n: $value}", `key: "v:<id>", changed: c, mode: watermark, on_decrease: drop`), "7:45: jobs[0].flush.from.changed: with mode watermark every run reads every key; remove it\n7:74: jobs[0].flush.from.on_decrease: \"drop\" is not known here; write stop, subtract or restart"},
		{"on_decrease without watermark", counters("{id: $field, n: $value}", `key: v, on_decrease: stop`), "7:38: jobs[0].flush.from.on_decrease: only with mode: watermark; remove it"},
		{"list with a generation", strings.Replace(spoil(hashesFrom, `from: {type: list, key: k, on_gap: stop}`), "table: t,", "table: t, generation: g,", 1), "7:34: jobs[0].flush.from.on_gap: only for stream; remove it\n8:38: jobs[0].flush.to.generation: only for scan; remove it"},
		{"insert_only of a scan without a generation", strings.Replace(spoil(hashesFrom, `from: {type: scan, key: "u:<id>"}`), "table: t,", "table: t, adopt: insert_only,", 1), "8:38: jobs[0].flush.to.adopt: insert_only needs generation, an integer column, because otherwise a scan cannot tell which rows it has written"},
		{"vanished without a generation", spoil(hashesFrom, `from: {type: scan, key: "u:<id>", vanished: delete, max_pct: 101}`), "7:41: jobs[0].flush.from.vanished: delete needs to.generation, an integer column that marks the rows that the last scan has seen\n7:59: jobs[0].flush.from.max_pct: 101: must be from 1 to 100 percent of the table's rows"},
		{"two scans of one column", strings.Replace(strings.Replace(job("  - name: b\n    schedule: \"@daily\"\n    flush:\n      from: {type: scan, key: \"w:<id>\"}\n      to: {database: main, table: t, generation: g, key: [id]}\n"), hashesFrom, `from: {type: scan, key: "u:<id>"}`, 1), "table: t,", "table: t, generation: g,", 1),
			"13:38: jobs[1].flush.to.generation: column g already counts the passes of jobs[0] in this table, so each job would treat the rows of the other as vanished; give each job its own column"},
		{"insert with a key", strings.Replace(spoil(hashesFrom, `from: {type: list, key: k}`), "table: t,", "table: t, mode: insert,", 1), "8:52: jobs[0].flush.to.key: mode insert has no key; rename it to dedupe_key to skip rows that already exist, or remove it"},
		{"hashes that insert", spoil("table: t,", "table: t, mode: insert, dedupe_key: [id],"), "8:38: jobs[0].flush.to.mode: \"insert\" is not known here; did you mean upsert?\n8:70: jobs[0].flush.to.key: mode insert has no key; rename it to dedupe_key to skip rows that already exist, or remove it"},
		{"batch rows", job("      batch_rows: 100001\n      batch_bytes: 65535\n      dead_letters: {per_batch: -1}\n"), "9:7: jobs[0].flush.batch_rows: 100001: must be from 1 to 100000 rows\n10:7: jobs[0].flush.batch_bytes: 65535: must be from 65536 to 1073741824 bytes\n11:22: jobs[0].flush.dead_letters.per_batch: -1: must be 1 or more"},
		{"words of a capture", spoil(hashesFrom, `from: {type: capture, key: "u:<id>", value: set, on_missing: ignore, max_pct: 5, on_flush: yes}`), "6:5: jobs[0].flush.columns: required for value: set; for example {id: id, member: $member}\n7:76: jobs[0].flush.from.max_pct: only with on_missing: delete or null; remove it\n7:88: jobs[0].flush.from.on_flush: \"yes\" is not known here; write stop, pass or delete"},
		{"members of a captured set in one row", strings.Replace(spoil(hashesFrom, `from: {type: capture, key: "u:<id>", value: set}`), "[id]}\n", "[id]}\n      columns: {id: id, m: $member}\n", 1), "8:38: jobs[0].flush.to.key: each member is a row, so one of these columns must be made from $member; otherwise all members of a key would be one row"},
		{"nothing to set to null", strings.Replace(spoil(hashesFrom, `from: {type: capture, key: "u:<id>", value: set, on_missing: "null"}`), "[id]}\n", "[id, m]}\n      columns: {id: id, m: $member}\n", 1), "7:56: jobs[0].flush.from.on_missing: null needs a column that is not in the key; write delete or ignore"},
		{"two captures into a table", strings.Replace(job("  - name: b\n    schedule: \"@daily\"\n    flush:\n      from: {type: capture, key: \"w:<id>\"}\n      to: {database: main, table: t, key: [id]}\n"), hashesFrom, `from: {type: capture, key: "u:<id>"}`, 1), "13:28: jobs[1].flush.to.table: jobs[0] captures into table t, too, so each job would delete the rows of the other; give each job its own table, or set on_missing: ignore"},
		{"members of sets in one row", strings.Replace(spoil(hashesFrom, `from: {type: scan, key: "u:<id>", value: set}`), "[id]}\n", "[id]}\n      columns: {id: id, m: $member}\n", 1), "8:38: jobs[0].flush.to.key: each member is a row, so one of these columns must be made from $member; otherwise all members of a key would be one row"},
		{"members of sets without columns", spoil(hashesFrom, `from: {type: scan, key: "u:<id>", value: zset}`), "6:5: jobs[0].flush.columns: required for value: zset; for example {id: id, member: $member, score: $score}"},
		{"members of a zset in one row", strings.Replace(spoil(hashesFrom, "from: {type: zset, key: board, changed: c}"), "[id]}\n", "[id]}\n      columns: {id: $score, m: $member}\n", 1), "8:38: jobs[0].flush.to.key: each member is a row, so one of these columns must be made from $member; otherwise all members of a key would be one row"},
		{"zset without columns", spoil(hashesFrom, "from: {type: zset, key: board, changed: c}"), "6:5: jobs[0].flush.columns: required for zset; for example {member: $member, score: $score}"},
		{"shards of a zset without an index", spoil(hashesFrom, `from: {type: zset, key: "board:[0-3]"}`), "6:5: jobs[0].flush.columns: required for zset; for example {member: $member, score: $score}\n7:7: jobs[0].flush.from.changed: required; for example changed:user, the set of changed ids\n7:26: jobs[0].flush.from.key: key \"board:[0-3]\" looks like several keys: name one key, and make a job for each key"},
		{"everything is deleted, and some", strings.Replace(spoil(hashesFrom, `from: {type: list, key: k}`), "table: t,", "table: t, mode: delete, delete_when: {op: x},", 1), "8:52: jobs[0].flush.to.delete_when: with mode delete every record deletes its row; remove delete_when, or write mode: upsert"},
		{"numbers that are 0", job("      lanes: 0\n      batch_rows: 0\n      dead_letters: {per_batch: 0}\n"), "9:7: jobs[0].flush.lanes: 0: must be 1 or more; leave the key out for the default\n10:7: jobs[0].flush.batch_rows: 0: must be 1 or more; leave the key out for the default\n11:22: jobs[0].flush.dead_letters.per_batch: 0: must be 1 or more; leave the key out for the default"},
		{"no rows may vanish", spoil(hashesFrom, `from: {type: scan, key: "u:<id>", max_pct: 0}`), "7:41: jobs[0].flush.from.max_pct: 0: must be 1 or more; leave the key out for the default"},
		{"share of rows that stay", spoil(hashesFrom, `from: {type: scan, key: "u:<id>", max_pct: 20}`), "7:41: jobs[0].flush.from.max_pct: only with vanished: delete; remove it"},
		{"start of a stream", spoil(hashesFrom, `from: {type: stream, key: k, start: begin}`), `7:36: jobs[0].flush.from.start: "begin" is not known here; write beginning, end, or the id of an entry, such as 1526919030474-0`},
		{"no key", spoil(`key: "u:<id>", `, ""), "7:7: jobs[0].flush.from.key: required; for example user:<id>"},
		{"row key", spoil("u:<id>", "u"), "7:28: jobs[0].flush.from.key: key \"u\" must name the id of a row once, as in user:<id>"},
		{"no index", spoil(", changed: c", ""), "7:7: jobs[0].flush.from.changed: required; for example changed:user, the set of changed ids"},
		{"on missing", spoil("changed: c", "changed: c, on_missing: drop"), `7:55: jobs[0].flush.from.on_missing: "drop" is not known here; write delete, ignore or null`},
		{"index of counters", strings.Replace(spoil(hashesFrom, `from: {type: counters, key: v, changed: c, on_missing: null}`), "t, key: [id]}", "t, key: [id]}\n      columns: {id: $field, n: $value}", 1),
			"7:38: jobs[0].flush.from.changed: only for counters with a key each, such as hits:<id>; the fields of a hash need no index: remove it\n7:50: jobs[0].flush.from.on_missing: only for hashes, zset or capture; remove it"},
		{"key of counters", counters("{id: $field, n: $value}", `key: "v:<id>"`), "7:7: jobs[0].flush.from.changed: required; for example changed:user, the set of changed ids\n9:17: jobs[0].flush.columns.id.from: $field is only for counters in one hash; here write the name of a captured part of the key, for example id of hits:<id>"},
		{"key flushed twice", job("  - name: b\n    schedule: \"@daily\"\n    flush:\n      from: {type: hashes, key: \"w:<id>\", changed: c}\n      to: {database: main, table: t, key: [id]}\n"), `12:43: jobs[1].flush.from.changed: "c" is flushed by jobs[0] already; a key belongs to one job`},
		{"key whose stage is that of another", job("  - name: b\n    schedule: \"@daily\"\n    flush:\n      from: {type: hashes, key: \"w:<id>\", changed: \"{c}\"}\n      to: {database: main, table: t, key: [id]}\n"), `12:43: jobs[1].flush.from.changed: "{c}" is flushed by jobs[0] already; a key belongs to one job`},

		{"database reference", spoil("database: main", "database: man"), `8:12: jobs[0].flush.to.database: "man" is not under databases; did you mean main?`},
		{"no database at all", strings.Replace(job(""), "databases: {main: {driver: sqlite, dsn: x}}\n", "", 1), `7:12: jobs[0].flush.to.database: "main" is not under databases, which is empty`},
		{"no table", spoil("table: t, ", ""), "8:7: jobs[0].flush.to.table: required; for example articles"},
		{"no row key", spoil(", key: [id]", ""), "8:7: jobs[0].flush.to.key: required: the columns that identify a row, for example [id]"},
		{"column twice in the key", spoil("[id]", "[id, id]"), `8:48: jobs[0].flush.to.key[1]: "id": write each column once`},
		{"schema", spoil("table: t", "schema: drop, table: t"), `8:28: jobs[0].flush.to.schema: "drop" is not known here; write verify or create`},

		{"counters without columns", spoil(hashesFrom, countersFrom), "6:5: jobs[0].flush.columns: required for counters; for example {id: $field, views: $value}"},
		{"counters without a value", counters("{id: $field}", ""), "9:7: jobs[0].flush.columns: no column takes the increments; add one, for example {views: $value}"},
		{"counters of a field", counters("{id: name, n: $value}", ""), `9:17: jobs[0].flush.columns.id.from: "name": a counter has $field, its field's name, and $value, its increment`},
		{"counters that set", counters("{id: $field, n: {from: $value, op: set}}", ""), `9:47: jobs[0].flush.columns.n.op: $value is an increment; set would lose the value of the row, write add or leave op out`},
		{"a name added", counters("{id: $field, m: {from: $field, op: add}, n: $value}", ""), `9:47: jobs[0].flush.columns.m.op: $field is a name, not a number; leave op out`},
		{"a text added", counters("{id: $field, n: {from: $value, type: text}}", ""), `9:47: jobs[0].flush.columns.n.type: a column of type text cannot have op: add; write integer, float or numeric`},
		{"key added to", counters("{id: $value}", ""), `8:44: jobs[0].flush.to.key[0]: column "id" has op: add, but a column of the key identifies a row and cannot change`},
		{"key not mapped", job("      columns: {name: name}\n"), `8:44: jobs[0].flush.to.key[0]: column "id" is not under columns`},
		{"hashes that add", job("      columns: {id: id, n: {op: add}}\n"), `9:29: jobs[0].flush.columns.n.op: op: add is only for counters, list and stream, because a hash that is read twice would be added twice`},
		{"column type", job("      columns: {id: {type: int}}\n"), `9:22: jobs[0].flush.columns.id.type: "int" is not known here; write integer, float, numeric, text, bytes, boolean, timestamp, date, json or uuid`},
		{"column format", job("      columns: {id: {type: text, format: unix}}\n"), `9:34: jobs[0].flush.columns.id.format: only a timestamp or a date has a format, but this column is of type text`},
		{"missing", job("      columns: {id: {missing: drop}}\n"), `9:22: jobs[0].flush.columns.id.missing: "drop" is not known here; write error, null or keep`},
		{"empty", job("      columns: {id: {empty: zero}}\n"), `9:22: jobs[0].flush.columns.id.empty: "zero" is not known here; write null`},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, tc.want) })
	}
}

// counters returns a valid job of type counters with the given columns. from replaces "key: v".
func counters(columns, from string) string {
	text := spoil(hashesFrom, countersFrom)
	if from != "" {
		text = strings.Replace(text, "key: v", from, 1)
	}
	return text + "      columns: " + columns + "\n"
}

func TestAllProblemsAreReportedAtOnceSortedByLine(t *testing.T) {
	_, err := read(t, `nodes: {}
jobs:
  - name: Bad
    schedule: "@hourly"
    timeout: soon
  - just text
election:
  ttl: 1x
  heartbeat_interval: 9s
log: {level: loud}
`, map[string]string{"BATON_POLL_INTERVAL": "often"}, map[string]string{"http": "x"})
	want := strings.TrimSpace(`
baton.yaml:1:1: nodes: unknown key; did you mean node?
baton.yaml:3:5: jobs[0].flush: required: flush, which moves data into a table, or command, which runs a program
baton.yaml:3:5: jobs[0].name: "Bad": use lower-case letters, digits and dashes, at most 63 characters
baton.yaml:5:5: jobs[0].timeout: bad duration "soon": write a number and a unit, for example 500ms, 10s or 1m30s
baton.yaml:6:5: jobs[1]: write key: value pairs here
baton.yaml:8:3: election.ttl: bad duration "1x": write a number and a unit, for example 500ms, 10s or 1m30s
baton.yaml:10:7: log.level: "loud" is not known here; write debug, info, warn or error
BATON_POLL_INTERVAL: election.poll_interval: bad duration "often": write a number and a unit, for example 500ms, 10s or 1m30s
--http: http.listen: "x": write host:port, for example 127.0.0.1:9747, or off`)
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
