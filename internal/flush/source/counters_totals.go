package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/parts"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// TotalsOptions describe one source of a counters job with the setting "mode: watermark". The totals are never reset; producers add to them
// with HINCRBY, INCRBY or INCRBYFLOAT.
type TotalsOptions struct {
	Job string
	// Key is a hash of field → total. If it contains an <id>, as in "hits:<page>", it is the pattern of keys that each contain one total.
	Key string
	// Inputs are "$field" or the captured name ("page"), and "$value", in any order.
	Inputs []string
	// PageRows is the number of totals whose marks one query reads. Default 5000.
	PageRows int
}

// Totals reads totals page by page. It is a flush.Source that writes nothing to Redis, and has no stage. If a total changes during the
// reading, the reading returns one of the values that the total had, and the next pass returns a later value. A scan may return a counter
// again with a later value, but never with an earlier one.
type Totals struct {
	store    *redisconn.Store
	job      string
	key      string
	row      spec.RowKey // the pattern of the keys that each contain one total; zero for a hash
	inputs   []string
	name     string // the name of the input that is not $value
	pageRows int
}

// NewTotals checks the options and does not connect.
func NewTotals(store *redisconn.Store, o TotalsOptions) (*Totals, error) {
	if o.Job == "" {
		return nil, errors.New("a flush source needs the name of its job")
	}
	s := &Totals{
		store: store, job: o.Job, key: o.Key, inputs: o.Inputs, name: inputField,
		pageRows: positive(o.PageRows, defaultPageRows),
	}
	if strings.ContainsAny(o.Key, "<>") {
		row, err := spec.ParseRowKey(o.Key)
		if err != nil {
			return nil, err
		}
		s.row, s.name = row, row.Name
	} else if o.Key == "" {
		return nil, redisconn.CheckKey(o.Key)
	}
	for _, input := range o.Inputs {
		if input != s.name && input != inputValue {
			return nil, fmt.Errorf("totals %q have no input %q: use %s and %s", o.Key, input, s.name, inputValue)
		}
	}
	return s, nil
}

// Name returns the key of the hash, or the pattern of the keys that each contain one total.
func (s *Totals) Name() string { return s.key }

// Stage counts the totals in a hash. It does not count totals that have their own keys. If the job had another mode before, it may have
// left a stage that no later run would flush. In that case Stage returns staging.ErrBrokenStage.
func (s *Totals) Stage(ctx context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	st.ID = newID
	if s.row.Name != "" {
		return st, true, nil
	}
	stage := staging.Key{Live: s.key}.StageKey()
	left, err := redis.Bool(s.store.Run(ctx, s.key, func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "EXISTS", stage)
	}))
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal) && redisconn.Code(refusal) == "NOPERM": // no earlier run can have made a stage without this permission
	case err != nil:
		return st, false, s.fail("look for a stage of", err)
	case left:
		return st, false, fmt.Errorf("%w: %q has increments that `mode: stage` removed from %q and has not written to the database yet. "+
			"Run job %q once more with `mode: stage`, and then change its mode", staging.ErrBrokenStage, stage, s.key, s.job)
	}
	st.Size, err = redis.Int64(s.store.Run(ctx, s.key, func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HLEN", s.key)
	}))
	return st, st.Size > 0, s.fail("count", err)
}

// Read yields all totals, page by page.
func (s *Totals) Read(ctx context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	if s.row.Name == "" {
		c, err := s.store.Conn(ctx, s.key)
		if err != nil {
			return err
		}
		defer c.Close() // returns it to the pool
		return s.readHash(ctx, c, yield)
	}
	masters, err := s.store.Masters(ctx)
	if err != nil {
		return err
	}
	// The servers are read one after the other. So if a key is read twice because it has moved to another server, its later value is read
	// last.
	for _, node := range masters {
		if err := s.readKeysOf(ctx, node, yield); err != nil {
			return err
		}
	}
	return nil
}

func (s *Totals) fail(doing string, err error) error {
	var reply redis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && strings.HasPrefix(string(reply), "WRONGTYPE"):
		return fmt.Errorf("%w: %q is not a hash, but job %q needs a hash: correct the key in the job's configuration (if each counter "+
			"has its own key, write the key with an <id>)", staging.ErrWrongType, s.key, s.job)
	}
	return fmt.Errorf("%s the totals of %q for job %q: %w", doing, s.key, s.job, redisconn.Explain(err))
}

// totalsPage collects a page. If a counter comes twice, the later total replaces the earlier one.
type totalsPage struct {
	at    map[string]int
	pairs []parts.Pair
	bytes int
}

// totalsPageBytes limits the bytes of a page, because names may be long.
const totalsPageBytes = 4 << 20

func newTotalsPage() *totalsPage { return &totalsPage{at: map[string]int{}} }

// full reports whether the page has the given number of rows, or has reached totalsPageBytes.
func (p *totalsPage) full(rows int) bool { return len(p.pairs) >= rows || p.bytes >= totalsPageBytes }

func (p *totalsPage) set(name, total string) {
	if i, twice := p.at[name]; twice {
		p.pairs[i].Value = total
		return
	}
	p.at[name] = len(p.pairs)
	p.pairs = append(p.pairs, parts.Pair{Field: name, Value: total})
	p.bytes += len(name) + len(total)
}

// page returns a page of the collected totals.
func (s *Totals) page(p *totalsPage) flush.Page {
	return flush.Page{Part: -1, Records: recordsOf(p.pairs, s.inputs, s.name)}
}

func (s *Totals) readHash(ctx context.Context, c redisconn.Conn, yield func(flush.Page) error) error {
	pace := redisconn.NewScanPace()
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		p := newTotalsPage()
		var field string
		element := 0
		full := func() bool { return p.full(s.pageRows) }
		next, err := c.ScanKey(ctx, "HSCAN", s.key, cursor, pace, full, func(text []byte) {
			if element++; element%2 == 1 {
				field = string(text)
			} else {
				p.set(field, string(text))
			}
		})
		if err != nil {
			return s.fail("read", err)
		}
		cursor = next
		if err := s.yield(p, yield); err != nil {
			return err
		}
	}
	return nil
}

func (s *Totals) yield(p *totalsPage, yield func(flush.Page) error) error {
	if len(p.pairs) == 0 {
		return nil
	}
	return yield(s.page(p))
}

var totalsSpec = Spec{
	Kind: spec.Named("watermark"),
	inputs: func(Options) (row.Inputs, error) {
		return row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByMark}, nil
	},
	commands: func(Options, string) []string { return []string{"HLEN K", "HSCAN K 0"} },
	open:     openTotals, policy: policyOfTotals,
}

var keyTotalsSpec = Spec{
	Kind: spec.Named("watermark keys"),
	inputs: func(o Options) (row.Inputs, error) {
		return captured(o, row.Inputs{Names: []string{row.InputValue}, Guarantee: row.ByMark})
	},
	commands: func(Options, string) []string { return []string{"SCAN 0", "GETRANGE R 0 1"} },
	open:     openTotals, policy: policyOfTotals,
}

func policyOfTotals(o Options) (flush.Policy, error) {
	return flush.Policy{OnDecrease: flush.OnDecrease(o.OnDecrease), BatchRows: o.Rows}, nil
}

func openTotals(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
	return NewTotals(s, TotalsOptions{Job: o.Job, Key: key, Inputs: inputs, PageRows: o.Rows})
}
