package crash_test

import (
	"fmt"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	sourcespec "baton/internal/flush/source/spec"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
)

// kind is a source under test, by its name in the registry of sources.
type kind string

// The tests use these names for the kinds that behave differently from other kinds.
const (
	counters  kind = "counters"
	plain     kind = "plain"
	watermark kind = "watermark"
	keyTotals kind = "watermark keys"
	hashes    kind = "hashes"
	zset      kind = "zset"
	list      kind = "list"
	stream    kind = "stream"
	scan      kind = "scan"
	capture   kind = "capture"
	// members is the kind of a capture of sorted sets, whose place is in the database before the flush.
	members kind = "capture of members"
)

// fixture contains the data of a kind of source, and the settings of its job.
type fixture struct {
	// fill writes the data of the first run. traffic then writes more, and changes every page of the data that fill wrote.
	fill    func(*cell)
	traffic func(c *cell, round string)
	table   string
	mapping mapping.Spec // the cell sets the table
	lanes   int          // 0: one
	source  func(s spec) source.Options
	// asks lists the commands and scripts that a flush sends. Of commands that are sent together it has only the first. The test is
	// incomplete if a flush sends another command, or not all of these.
	asks []string
}

// fixtures returns the fixtures of all kinds of sources.
func fixtures() map[kind]fixture {
	sums := func(id string) mapping.Spec {
		return mapping.Spec{Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{"id": {From: id}, "n": {From: row.InputValue, Op: "add"}}}
	}
	retain := retention
	return map[kind]fixture{
		counters: {fillCounters, moreCounters, "counts", sums(row.InputField), 2, func(s spec) source.Options {
			return source.Options{Key: s.Live, Rows: partRows}
		}, []string{"stage", "HSCAN", "HGET", "HLEN", "HMGET", "counters_deal", "stage_discard"}},
		plain: {fillCounters, moreCounters, "counts", sums("id"), 2, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Changed: s.Live, Rows: partRows}
		}, []string{"counters_stage", "TYPE", indexScan, "counters_gather", "counters_seal", "HSCAN", "HGET", "HLEN", "HMGET", "counters_deal", "stage_discard"}},
		watermark: {fillCounters, moreCounters, "counts", sums(row.InputField), 0, func(s spec) source.Options {
			return source.Options{Key: s.Kept, Rows: partRows}
		}, []string{"EXISTS", "HLEN", "HSCAN"}},
		keyTotals: {fillCounters, moreCounters, "counts", sums("id"), 0, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Rows: partRows}
		}, []string{"SCAN", "GETRANGE"}},
		hashes: {fillHashes, moreHashes, "people", mapping.Spec{Key: []string{"id"}}, 0, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Changed: s.Live, Rows: pageRows, RemoveEvery: s.RemoveEvery}
		}, []string{"stage", "HGET", indexScan, "HMGET", "MULTI", "stage_remove", "stage_discard"}},
		zset: {fillHashes, moreHashes, "people", mapping.Spec{Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{
			"id": {From: row.InputMember}, "name": {From: row.InputMember}, "age": {From: row.InputScore},
		}}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Kept, Changed: s.Live, Rows: pageRows, RemoveEvery: s.RemoveEvery}
		}, []string{"stage", "HGET", indexScan, "ZMSCORE", "stage_remove", "stage_discard"}},
		list: {fillEvents, moreEvents, "events", mapping.Spec{}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Live, Rows: partRows}
		}, []string{"list_stage", "HMGET", "LRANGE", "list_trim", "stage_discard"}},
		stream: {fillEvents, moreEvents, "events", mapping.Spec{}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Kept, Rows: partRows, Retain: &retain}
		}, []string{"MULTI", "XRANGE", "stream_trim"}},
		// This kind has rows that vanish.
		scan: {fillHashes, moreHashes, "people", mapping.Spec{Key: []string{"id"}, Generation: "pass"}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Value: "hash", Rows: pageRows, Vanished: "delete", MaxPct: 90}
		}, []string{"INFO", "SCAN", "HMGET", "TYPE"}},
		capture: {fillHashes, moreHashes, "people", mapping.Spec{Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{
			"id": {}, "name": {}, "age": {},
		}}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Value: "hash", Rows: pageRows, MaxPct: 90}
		}, []string{"COMMAND", "REPLCONF", "INFO", "PSYNC", "SCAN", "HMGET", "TYPE"}},
		members: {fillMembers, moreHashes, "boards", mapping.Spec{Key: []string{"board", "id"}, Columns: map[string]mapping.ColumnSpec{
			"board": {From: "id"}, "id": {From: row.InputMember}, "age": {From: row.InputScore},
		}}, 2, func(s spec) source.Options {
			return source.Options{Key: s.Rows, Value: "zset", Rows: pageRows / 3, MaxPct: 90}
		}, []string{"COMMAND", "REPLCONF", "INFO", "PSYNC", "ZSCORE", indexScan}},
	}
}

// kinds returns the kinds that have a fixture, in the order of the registry, and then further fixtures of some of these kinds.
func kinds() (all []kind) {
	for _, s := range source.Sources() {
		if _, ok := fixtures()[kind(s.Name)]; ok {
			all = append(all, kind(s.Name))
		}
	}
	return append(all, members)
}

// is returns the entry of the kind in the registry of sources.
func (k kind) is() sourcespec.Kind {
	if k == members {
		k = capture
	}
	return sourcespec.Named(string(k))
}

// follows reports whether the kind learns of changes from the replication stream, perhaps a moment later.
func (k kind) follows() bool { return k.is().Type == sourcespec.Capture }

func (k kind) fixture() fixture { return fixtures()[k] }

// inRedis returns the steps in Redis of a flush of this kind.
func (k kind) inRedis() (steps []string) {
	for _, name := range k.fixture().asks {
		steps = append(steps, redistest.Before(name), redistest.After(name))
	}
	return steps
}

// indexScan is the command that reads an index. The index of one cell is a set, and the index of the next cell is a sorted set.
const indexScan = "SSCAN"

func inSets(step string) string { return strings.Replace(step, "ZSCAN", indexScan, 1) }

// totals reports whether the kind's counters are never taken out of Redis.
func (k kind) totals() bool { return k.is().Watermark }

// states reports whether the kind's records contain the present states of rows.
func (k kind) states() bool { return k.is().Delivers == sourcespec.States }

// looks reports whether nothing shows which changes are pending, so that only another reading of all data finds them.
func (k kind) looks() bool { return k.is().Looks }

// giveWay is Retry.GiveWay: long, so that a busy machine does not make a batch give way. The table of members is so small that
// MariaDB looks for the rows to delete in all of it, and waits for those that the batch before has written. There most flushes give
// way however long that is, and so they soon do.
func (k kind) giveWay() time.Duration {
	if k == members {
		return 500 * time.Millisecond
	}
	return 3 * time.Second
}

// configure sets the configuration of a cell's job.
func (k kind) configure(config *flush.Config, s spec, r *redisconn.Store) error {
	f, is := k.fixture(), k.is()
	config.Mapping, config.Lanes = f.mapping, f.lanes
	config.Mapping.Table = s.Table
	o := f.source(s)
	o.Job, o.Type, o.Watermark, o.Lanes = config.Job, is.Type, is.Watermark, config.Lanes
	source, err := source.Describe(o)
	if err != nil {
		return err
	}
	source.Configure(config, r)
	return nil
}

// fillCounters adds to existing rows and to new rows. 40 counters are two parts.
func fillCounters(c *cell) {
	var rows []string
	for i := range int64(8) {
		c.sums[c.id(i*5)] = 100
		rows = append(rows, fmt.Sprintf("(%d,100)", c.id(i*5)))
	}
	c.insert("counts (id, n)", rows)
	for i := range int64(39) {
		c.add(i, i+1)
	}
	c.increment("no number", 1)
	c.dead = 1
}

func moreCounters(c *cell, _ string) {
	for i := int64(1); i < 45; i += 4 {
		c.add(i, 1000)
	}
}

func (c *cell) add(i, n int64) {
	c.increment(fmt.Sprint(c.id(i)), n)
	c.sums[c.id(i)] += n
}

// increment increments a counter as the kind's producers do.
func (c *cell) increment(name string, n int64) {
	s := c.spec("")
	switch c.kind {
	case counters:
		c.send("HINCRBY", s.Live, name, n)
	case watermark:
		c.send("HINCRBY", s.Kept, name, n)
	case keyTotals:
		c.send("INCRBY", fmt.Sprintf("row:%d:%s", c.n, name), n)
	default:
		c.send("MULTI")
		c.send("INCRBY", fmt.Sprintf("row:%d:%s", c.n, name), n)
		c.index(name)
		c.send("EXEC")
	}
}

// fillHashes writes 30 rows, as hashes or as members of a sorted set, which are three pages. One row is deleted, and two rows do not fit.
func fillHashes(c *cell) {
	c.createTable()
	var rows []string
	for i := range int64(10) {
		rows = append(rows, fmt.Sprintf("(%d,'old',1,1)", c.id(i*3)))
	}
	c.insert(c.spec("").Table+" (id, name, age, pass)", rows)
	for i := range int64(30) {
		switch i {
		case 6:
			c.gone(i)
		case 13: // no integer: the mapping puts it aside
			c.change(i, "misfit", "inf")
			delete(c.want, fmt.Sprint(c.id(i)))
		case 22: // the database refuses it
			c.change(i, "refused", "-1")
			delete(c.want, fmt.Sprint(c.id(i)))
		default:
			c.change(i, "first", fmt.Sprint(i))
		}
	}
	c.dead = 2
}

// fillMembers writes 30 members of two sorted sets. It writes most of them, and some that are removed again, before the run that the cell
// tests.
func fillMembers(c *cell) {
	c.createTable()
	for i := range int64(36) {
		c.change(i, "", fmt.Sprint(100+i))
	}
	c.flushed()
	c.fresh()
	for i := range int64(30) {
		switch i {
		case 6:
			c.gone(i)
		case 13: // no integer: the mapping puts it aside
			c.gone(i)
			c.change(40, "", "inf")
			delete(c.want, fmt.Sprint(c.id(40)))
		case 22: // the database refuses it
			c.gone(i)
			c.change(41, "", "-1")
			delete(c.want, fmt.Sprint(c.id(41)))
		default:
			c.change(i, "", fmt.Sprint(i))
		}
	}
	for i := range int64(6) {
		c.gone(30 + i)
	}
	c.dead = 2
}

// createTable makes a separate table for a scan or a capture, because the flush deletes the table's rows that are not in its source.
func (c *cell) createTable() {
	switch c.kind {
	case scan, capture:
		c.db.Exec(c.t, fmt.Sprintf(peopleSQL, c.spec("").Table)+c.engine())
	case members:
		c.db.Exec(c.t, fmt.Sprintf(boardsSQL, c.spec("").Table)+c.engine())
	}
}

func moreHashes(c *cell, round string) {
	c.rounds++ // setting a member to its present score is no change
	for i := int64(1); i < 34; i += 4 {
		if i != 13 {
			c.change(i, round, fmt.Sprint(40+i+c.rounds))
		}
	}
	c.gone(2)
	c.change(6, round, "7")
}

// change writes a row and then the row's mark, in the required order. The name of a member is the member itself, or the name of its
// board.
func (c *cell) change(i int64, name, age string) {
	switch c.kind {
	case zset:
		name = fmt.Sprint(c.id(i))
		c.send("ZADD", c.spec("").Kept, age, name)
	case members:
		name = fmt.Sprint(i % 2)
		c.send("ZADD", c.board(i), age, c.id(i))
	default:
		c.send("HSET", fmt.Sprintf("row:%d:%d", c.n, c.id(i)), "name", name, "age", age)
	}
	c.mark(i)
	c.want[fmt.Sprint(c.id(i))] = name + " " + age
}

// board returns the key of the sorted set of a member.
func (c *cell) board(i int64) string { return fmt.Sprintf("row:%d:%d", c.n, i%2) }

func (c *cell) gone(i int64) {
	switch c.kind {
	case zset:
		c.send("ZREM", c.spec("").Kept, c.id(i))
	case members:
		c.send("ZREM", c.board(i), c.id(i))
	default:
		c.send("DEL", fmt.Sprintf("row:%d:%d", c.n, c.id(i)))
	}
	c.mark(i)
	delete(c.want, fmt.Sprint(c.id(i)))
}

// mark adds the id of a row to the index of changes, if the kind has an index.
func (c *cell) mark(i int64) {
	if c.kind.is().Indexed {
		c.index(fmt.Sprint(c.id(i)))
	}
}

// index marks a change. The index of every other cell is a sorted set.
func (c *cell) index(id string) {
	if c.n%2 == 0 {
		c.send("SADD", c.spec("").Live, id)
	} else {
		c.send("ZADD", c.spec("").Live, 1, id)
	}
}

// fillEvents writes 45 events, which are three parts. Two events do not fit.
func fillEvents(c *cell) {
	for range int64(43) {
		c.event("first", "7")
	}
	c.poison("misfit", "unknown")
	c.poison("refused", "-1")
	c.dead = 2
}

func moreEvents(c *cell, round string) {
	for range 25 {
		c.event(round, "8")
	}
}

// event appends a record that differs from all other records.
func (c *cell) event(name, age string) {
	c.events++
	c.append(c.id(c.events), name, age)
	c.want[fmt.Sprint(c.id(c.events))] = name + " " + age + " 1"
}

func (c *cell) poison(name, age string) { c.append(c.id(900), name, age) }

func (c *cell) append(id int64, name, age string) {
	if c.kind == list {
		c.send("RPUSH", c.spec("").Live, fmt.Sprintf(`{"id":%d,"name":%q,"age":%q}`, id, name, age))
	} else {
		c.send("XADD", c.spec("").Kept, "*", "id", id, "name", name, "age", age)
	}
}
