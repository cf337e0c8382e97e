package crash_test

import (
	"fmt"

	"baton/internal/flush"
	"baton/internal/redisstore"
)

// kind is a source under test.
type kind string

const (
	counters  kind = "counters"  // a hash of increments
	plain     kind = "plain"     // increments with a key each, and an index of them
	watermark kind = "watermark" // a hash of totals
	hashes    kind = "hashes"
	list      kind = "list"
	stream    kind = "stream"
	scan      kind = "scan" // with rows that vanish
)

// Counters with a key each and scans write in two lanes, the others in one.
func kinds() []kind { return []kind{counters, plain, watermark, hashes, list, stream, scan} }

// source is what redisstore.StepsOf calls it.
func (k kind) source() string { return string(k) }

// fixture is what a kind of source is fed with, and how it is set up.
type fixture struct {
	// fill writes what the first run finds; traffic writes on, and touches every page
	// of what fill wrote.
	fill    func(*cell)
	traffic func(c *cell, round string)
	// configure sets up the job.
	configure func(config *flush.Config, s spec, st *stores, observe func(step string) error)
	table     string
	// looks: nothing tells what is pending, so only another look at everything does.
	looks bool
}

func (k kind) fixture() fixture {
	switch k {
	case counters:
		return fixture{fillCounters, moreCounters, configureCounters, "counts", false}
	case plain:
		return fixture{fillCounters, moreCounters, configurePlain, "counts", false}
	case watermark:
		return fixture{fillCounters, moreCounters, configureTotals, "counts", true}
	case list:
		return fixture{fillEvents, moreEvents, configureList, "events", false}
	case stream:
		return fixture{fillEvents, moreEvents, configureStream, "events", false}
	case scan:
		return fixture{fillHashes, moreHashes, configureScan, "people", true}
	default:
		return fixture{fillHashes, moreHashes, configureHashes, "people", false}
	}
}

func single(s flush.Source, err error) ([]flush.Source, error) { return []flush.Source{s}, err }

func configureCounters(config *flush.Config, s spec, st *stores, observe func(string) error) {
	config.Mapping = flush.MappingSpec{Table: "counts", Key: []string{"id"},
		Columns: map[string]flush.ColumnSpec{"id": {From: flush.InputField}, "n": {From: flush.InputValue, Op: "add"}}}
	config.Inputs = flush.Inputs{Names: []string{flush.InputField, flush.InputValue}, Ledger: true}
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewCounters(st.redis, redisstore.CountersOptions{
			Job: s.Job, Key: s.Live, Inputs: inputs, PartRows: partRows, Observe: observe}))
	}
}

func configurePlain(config *flush.Config, s spec, st *stores, observe func(string) error) {
	config.Mapping = flush.MappingSpec{Table: "counts", Key: []string{"id"},
		Columns: map[string]flush.ColumnSpec{"id": {}, "n": {From: flush.InputValue, Op: "add"}}}
	config.Inputs = flush.Inputs{Names: []string{"id", flush.InputValue}, Ledger: true}
	config.Lanes = 2
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewPlainCounters(st.redis, redisstore.PlainCountersOptions{
			Job: s.Job, Key: s.Rows, Changed: s.Live, Inputs: inputs, PartRows: partRows, Lanes: config.Lanes, Observe: observe}))
	}
}

func configureTotals(config *flush.Config, s spec, st *stores, observe func(string) error) {
	configureCounters(config, s, st, observe)
	config.Inputs.Watermark = true
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewTotals(st.redis, redisstore.TotalsOptions{
			Job: s.Job, Key: s.Kept, Inputs: inputs, PageRows: partRows, Observe: observe}))
	}
}

func configureHashes(config *flush.Config, s spec, st *stores, observe func(string) error) {
	config.Mapping = flush.MappingSpec{Table: "people", Key: []string{"id"}}
	config.Inputs = flush.Inputs{Names: []string{"id"}, Fields: true}
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewHashes(st.redis, redisstore.HashesOptions{
			Job: s.Job, Key: s.Rows, Changed: s.Live, Inputs: inputs, PageRows: pageRows, RemoveEvery: s.RemoveEvery, Observe: observe}))
	}
}

func configureList(config *flush.Config, s spec, st *stores, observe func(string) error) {
	config.Mapping = flush.MappingSpec{Table: "events"}
	config.Inputs = flush.Inputs{Names: []string{flush.InputValue}, Fields: true, Ledger: true}
	config.OnMissing = flush.MissingIgnore
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewList(st.redis, redisstore.ListOptions{
			Job: s.Job, Key: s.Live, Inputs: inputs, PartRows: partRows, Observe: observe}))
	}
}

func configureStream(config *flush.Config, s spec, st *stores, observe func(string) error) {
	configureList(config, s, st, observe)
	config.Inputs = flush.Inputs{Names: []string{flush.InputID}, Fields: true, Ledger: true, Position: true}
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		retain := retention
		return single(redisstore.NewStream(st.redis, redisstore.StreamOptions{
			Job: s.Job, Key: s.Kept, Inputs: inputs, PageRows: partRows, Retain: &retain, Observe: observe}))
	}
}

func configureScan(config *flush.Config, s spec, st *stores, observe func(string) error) {
	config.Mapping = flush.MappingSpec{Table: s.Table, Key: []string{"id"}, Generation: "pass"}
	config.Inputs = flush.Inputs{Names: []string{"id", flush.InputGeneration}, Fields: true, Repeats: true}
	config.OnMissing = flush.MissingIgnore
	config.Vanished, config.MaxPct, config.Lanes = flush.VanishedDelete, 90, 2
	config.NewSources = func(inputs []string) ([]flush.Source, error) {
		return single(redisstore.NewScan(st.redis, redisstore.ScanOptions{
			Job: s.Job, Key: s.Rows, Value: "hash", Inputs: inputs, PageRows: pageRows, Lanes: config.Lanes, Observe: observe}))
	}
}

// fillCounters adds to rows that are there and to new ones: 40 counters are two parts.
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

// increment does what the kind's producers do.
func (c *cell) increment(name string, n int64) {
	s := c.spec("")
	switch c.kind {
	case counters:
		c.send("HINCRBY", s.Live, name, n)
	case watermark:
		c.send("HINCRBY", s.Kept, name, n)
	default:
		c.send("MULTI")
		c.send("INCRBY", fmt.Sprintf("row:%d:%s", c.n, name), n)
		c.index(name)
		c.send("EXEC")
	}
}

// fillHashes writes 30 rows, which are three pages: one is gone, two do not fit.
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
		case 13: // not a number: the mapping puts it aside
			c.change(i, "misfit", "unknown")
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

// createTable gives a scan a table of its own: what it does not find there has vanished.
func (c *cell) createTable() {
	if c.kind == scan {
		c.db.Exec(c.t, fmt.Sprintf(peopleSQL, c.spec("").Table)+c.engine())
	}
}

func moreHashes(c *cell, round string) {
	for i := int64(1); i < 34; i += 4 {
		if i != 13 {
			c.change(i, round, fmt.Sprint(40+i))
		}
	}
	c.gone(2)
	c.change(6, round, "7")
}

// change writes a hash and then, as it must be, its mark.
func (c *cell) change(i int64, name, age string) {
	c.send("HSET", fmt.Sprintf("row:%d:%d", c.n, c.id(i)), "name", name, "age", age)
	c.mark(i)
	c.want[fmt.Sprint(c.id(i))] = name + " " + age
}

func (c *cell) gone(i int64) {
	c.send("DEL", fmt.Sprintf("row:%d:%d", c.n, c.id(i)))
	c.mark(i)
	delete(c.want, fmt.Sprint(c.id(i)))
}

// mark enters the id of a row into the index of changes, for who has one.
func (c *cell) mark(i int64) {
	if c.kind == hashes {
		c.index(fmt.Sprint(c.id(i)))
	}
}

// index marks a change; every other cell's index is a sorted set.
func (c *cell) index(id string) {
	if c.n%2 == 0 {
		c.send("SADD", c.spec("").Live, id)
	} else {
		c.send("ZADD", c.spec("").Live, 1, id)
	}
}

// fillEvents writes 45 events, which are three parts: two do not fit.
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

// event appends a record that no other is like.
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
