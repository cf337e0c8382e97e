package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/parts"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// These are the inputs of a counters source.
const (
	inputField = "$field"
	inputValue = "$value"
)

// CountersOptions describe one live key of a counters job. The key is a hash of field → delta; producers add to it with HINCRBY.
type CountersOptions struct {
	Job string
	Key string // the live key, of one shard
	// Inputs are "$field" and "$value", in any order.
	Inputs []string
	// PartRows is the desired number of fields in a part, which is one transaction. Default 5000.
	PartRows int
	// MemoryBudget limits the memory for reading, in bytes. Default 32 MiB.
	MemoryBudget int
	// Lanes is the number of lanes that share the parts. Default 1.
	Lanes int
}

// Counters reads one hash of counters. It is a flush.Source.
//
// Adding a delta is not idempotent. So every reading cuts a stage into the same parts, and the database's ledger records the written parts.
// The script that makes a stage stores the number of parts, and whether the fields are assigned to parts by their order: see
// [parts.Partitioner].
type Counters struct {
	staging.Key
	inputs []string
	field  string // the input that is the field
	budget int
	lanes  int
}

// NewCounters checks the options and does not connect.
func NewCounters(store *redisconn.Store, o CountersOptions) (*Counters, error) {
	key, err := staging.New(store, o.Job, o.Key, "hash")
	if err != nil {
		return nil, err
	}
	for _, input := range o.Inputs {
		if input != inputField && input != inputValue {
			return nil, fmt.Errorf("counters have no input %q: use %s and %s", input, inputField, inputValue)
		}
	}
	key.Parts = positive(o.PartRows, defaultPageRows)
	return &Counters{
		Key: key, inputs: o.Inputs, field: inputField,
		budget: positive(o.MemoryBudget, defaultMemoryBudget), lanes: positive(o.Lanes, 1),
	}, nil
}

func positive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Read yields the parts of the stage in order, each as one page, and leaves out empty parts. One pass over the stage collects as many parts
// as fit the memory budget; further passes collect the rest.
func (s *Counters) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close()
	dealt, whole, err := s.cut(ctx, c, st)
	if err != nil {
		return err
	}
	if whole != nil {
		return s.hand(whole.Take, 0, st.Parts, yield)
	}
	for lo := 0; lo < st.Parts; {
		w := parts.NewWindow(lo, dealt, s.budget)
		if err := s.collect(ctx, c, st, w.Add); err != nil {
			return err
		}
		if err := s.hand(w.Take, lo, w.Hi, yield); err != nil {
			return err
		}
		lo = w.Hi
	}
	return nil
}

// hand yields the parts from lo to hi-1, each as one page, and leaves out empty parts.
func (s *Counters) hand(take func(part int) []parts.Pair, lo, hi int, yield func(flush.Page) error) error {
	for part := lo; part < hi; part++ {
		pairs := take(part)
		if len(pairs) == 0 {
			continue
		}
		page := flush.Page{Part: part, Lane: part % s.lanes, Records: recordsOf(pairs, s.inputs, s.field)}
		if err := yield(page); err != nil {
			return err
		}
	}
	return nil
}

// cut assigns the fields to the parts. The script that made the stage has decided whether to cut by order. If so, the first reader computes
// the ends of the parts from the fields, and stores the ends next to the stage. Later readers use the stored ends, because they may not
// find all fields (HEXPIRE). The first reader has the whole stage in memory; only for this reader, cut returns the stage as the result
// whole.
func (s *Counters) cut(ctx context.Context, c redisconn.Conn, st flush.Stage) (dealt parts.Partitioner, whole *parts.Whole, err error) {
	dealt = parts.ByHash(st.Parts)
	if st.Parts < 2 {
		return dealt, nil, nil
	}
	const doing = "divide into parts the stage of"
	meta, err := redis.Strings(redis.DoContext(c, ctx, "HMGET", s.MetaKey(), "id", "parts", "ends"))
	if err != nil {
		return dealt, nil, s.Fail(doing, err)
	}
	if meta[0] != st.ID {
		return dealt, nil, s.Stale(st)
	}
	size, ordered := parts.Ordered(meta[1])
	if !ordered {
		return dealt, nil, nil
	}
	if meta[2] == "" {
		whole = parts.NewWhole(st.Parts, size)
		if err := s.collect(ctx, c, st, whole.Add); err != nil {
			return dealt, nil, err
		}
		own := whole.Cut()
		reply, err := redis.Strings(s.Script(ctx, doing, countersDealScript, s.MetaKey(), st.ID, own))
		switch {
		case err != nil:
			return dealt, nil, err
		case len(reply) < 2:
			return dealt, nil, s.Stale(st)
		}
		if meta[2] = reply[1]; meta[2] != own {
			whole = nil
		}
	}
	if dealt, err = parts.Of(meta[2], st.Parts); err != nil || !dealt.Ordered() {
		whole = nil
	}
	return dealt, whole, s.Fail(doing, err)
}

// collect calls add for every field of the stage, in one pass. It returns an error if fields may be missing.
func (s *Counters) collect(ctx context.Context, c redisconn.Conn, st flush.Stage, add func(field, value []byte)) error {
	var seen int64
	var field []byte // the field that waits for its value
	all := func() bool { return false }
	_, err := c.ScanKey(ctx, "HSCAN", s.StageKey(), "0", redisconn.NewScanPace(), all, func(text []byte) {
		if field == nil {
			field = text
			return
		}
		add(field, text)
		field = nil
		seen++
	})
	if err != nil {
		return s.Fail("read the stage of", err)
	}
	if _, err := s.Check(ctx, c, st); err != nil {
		return err
	}
	size, err := redis.Int64(redis.DoContext(c, ctx, "HLEN", s.StageKey()))
	if err != nil {
		return s.Fail("count the stage of", err)
	}
	if seen < size {
		return fmt.Errorf("read the stage of %q: the scan returned %d of %d fields; is there a proxy between baton and Redis? Nothing "+
			"of this pass was written", s.Live, seen, size)
	}
	return nil
}

// recordsOf returns the records of these counters. The argument name is the input that gets a counter's name. Every other input gets the
// counter's value.
func recordsOf(pairs []parts.Pair, inputs []string, name string) []row.Record {
	n := len(inputs)
	raws := make([]row.Raw, 0, len(pairs)*n)
	records := make([]row.Record, len(pairs))
	for i, pair := range pairs {
		for _, input := range inputs {
			text := pair.Value
			if input == name {
				text = pair.Field
			}
			raws = append(raws, row.Raw{Text: text, OK: true})
		}
		records[i] = row.Record{Key: pair.Field, Inputs: raws[i*n : (i+1)*n : (i+1)*n]}
	}
	return records
}

var countersSpec = Spec{
	Kind: spec.Named("counters"),
	idle: staging.Beside,
	inputs: func(Options) (row.Inputs, error) {
		return row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByLedger}, nil
	},
	commands: func(Options, string) []string {
		return append(slices.Clone(stagingCommands),
			"HLEN K", "HLEN S", "HSCAN S 0", "HDEL M passed", "PERSIST M", "EVAL s 1 M", "EVALSHA s 1 M")
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewCounters(s, CountersOptions{
			Job: o.Job, Key: key, Inputs: inputs, PartRows: o.Rows, Lanes: o.Lanes, MemoryBudget: defaultMemoryBudget / max(1, o.atOnce),
		})
	},
}
