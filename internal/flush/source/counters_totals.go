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

// TotalsOptions describe one source of a counters job with mode watermark: totals that
// producers add to with HINCRBY, INCRBY or INCRBYFLOAT and that are never reset.
type TotalsOptions struct {
	Job string
	// Key is a hash of field → total, or, with an <id> in it ("hits:<page>"), the pattern
	// of keys that hold a total each.
	Key string
	// Inputs are the parts of a record: "$field", or the captured name ("page"), and "$value", in any order.
	Inputs []string
	// PageRows is how many totals are read before the database returns their marks. Default 5000.
	PageRows int
}

// Totals pages through totals: a flush.Source that writes nothing to Redis. There is no stage: a total that changes during the reading is
// read with one of its values, and the next pass brings the rest. A scan may return a counter again, with a later value; it never returns
// an earlier one.
type Totals struct {
	store    *redisconn.Store
	job      string
	key      string
	row      spec.RowKey // of keys that hold a total each; zero for a hash
	inputs   []string
	name     string // of the input that is not $value
	pageRows int
}

// NewTotals checks the options; it does not connect.
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

// Name is the hash, or the pattern of the keys.
func (s *Totals) Name() string { return s.key }

// Stage returns how many totals a hash has; keys are not counted. staging.ErrBrokenStage if the job had another mode before and left a
// stage behind: no later run would flush that stage.
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
	case errors.As(err, &refusal) && redisconn.Code(refusal) == "NOPERM": // without the permission, no run can have staged
	case err != nil:
		return st, false, s.fail("look for a stage of", err)
	case left:
		return st, false, fmt.Errorf("%w: %q has increments that `mode: stage` took out of %q and has not brought into the database. "+
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
		defer c.Close() // it goes back to the pool
		return s.readHash(ctx, c, yield)
	}
	masters, err := s.store.Masters(ctx)
	if err != nil {
		return err
	}
	// One server after the other: if a key moves meanwhile and comes twice, its later value comes last.
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
		return fmt.Errorf("%w: %q is no hash, and job %q needs a hash there: correct the key in the job's configuration (keys of their "+
			"own are written with an <id>)", staging.ErrWrongType, s.key, s.job)
	}
	return fmt.Errorf("%s the totals of %q for job %q: %w", doing, s.key, s.job, redisconn.Explain(err))
}

// totalsPage collects a page. Of a counter that comes twice the later total counts.
type totalsPage struct {
	at    map[string]int
	pairs []parts.Pair
	bytes int
}

// totalsPageBytes ends a page of long names before it has all of its rows.
const totalsPageBytes = 4 << 20

func newTotalsPage() *totalsPage { return &totalsPage{at: map[string]int{}} }

// full reports whether the page has that many rows, or enough text.
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

// page makes records of the collected totals.
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
