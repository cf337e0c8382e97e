package flush

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"baton/internal/flush/row"
)

// ErrDecreased means that a total is below its mark and on_decrease is stop. The counter was not
// flushed; an operator has to decide.
var ErrDecreased = errors.New("flush: a total has decreased")

// OnDecrease is the meaning of a total below its mark.
type OnDecrease string

// The choices of on_decrease. The zero value means DecreaseStop.
const (
	DecreaseStop     OnDecrease = "stop"     // skip the counter and fail the run
	DecreaseSubtract OnDecrease = "subtract" // changes were undone: subtract the difference
	DecreaseRestart  OnDecrease = "restart"  // the counter restarted at zero: add all of it
)

func (o OnDecrease) check() error {
	switch o {
	case "", DecreaseStop, DecreaseSubtract, DecreaseRestart:
		return nil
	}
	return fmt.Errorf("on_decrease: %q is unknown: it is stop, subtract or restart", string(o))
}

// MarkName is the shard under which the database keeps the mark of one counter of a
// source. Different counters never share a name.
func MarkName(source, key string) string {
	// Only the part before the separator must not have one.
	return strings.NewReplacer("%", "%25", "#", "%23").Replace(source) + "#" + key
}

const (
	defaultBatchRows = 5000
	// totalsBytes ends a batch of long keys before it is full.
	totalsBytes = 8 << 20
)

// totals wraps a source of totals (row.ByMark): it delivers the growth of every counter since its
// mark in the database, and the new mark. Both are written in one transaction, so nothing is added
// twice or lost: the next pass starts from the committed mark. Unchanged counters are skipped.
//
// The reader is ahead of the writer, and a scan may return a counter again before its mark is in
// the database. So marks under way are kept here until their page is done.
type totals struct {
	Source
	run   *run
	value int // which input is $value

	parts     int
	filling   []*totalsPage // by lane
	decreases decreases

	mu       sync.Mutex
	underway map[string]underway // by the mark's name
}

// underway is a mark that may not be in the database yet.
type underway struct {
	value string
	part  int // of the last page that sets it
}

// totalsPage is a page that is being filled.
type totalsPage struct {
	page  Page
	marks map[string]int // name: index in page.Marks
	bytes int
}

// totals wraps a source of totals.
func (r *run) totals(source Source) Releaser {
	return &totals{
		Source: source, run: r, value: slices.Index(r.m.Inputs(), row.InputValue),
		filling:  make([]*totalsPage, max(1, r.cfg.Lanes)),
		underway: map[string]underway{},
	}
}

// Read yields numbered pages of changed counters, so that the ledger recognises a repeated page.
func (t *totals) Read(ctx context.Context, st Stage, yield func(Page) error) error {
	err := t.Source.Read(ctx, st, func(p Page) error { return t.page(ctx, p, yield) })
	if err != nil {
		return err
	}
	for lane := range t.filling {
		if err := t.deliver(lane, yield); err != nil {
			return err
		}
	}
	return t.decreases.err(t.Name())
}

// Done forgets the marks of a page: the database has them. The wrapped source knows no such page.
func (t *totals) Done(_ context.Context, _ Stage, p Page) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range p.Marks {
		if t.underway[m.Name].part == p.Part {
			delete(t.underway, m.Name)
		}
	}
	return nil
}

// page adds a page of totals.
func (t *totals) page(ctx context.Context, p Page, yield func(Page) error) error {
	names, seen, err := t.seen(ctx, p.Records)
	if err != nil {
		return err
	}
	for i, r := range p.Records {
		next, changed, err := t.settle(&r, seen[names[i]])
		if err != nil {
			return fmt.Errorf("mark %q of job %q: %w", names[i], t.run.cfg.Job, err)
		}
		if !changed {
			continue
		}
		seen[names[i]] = next
		if err := t.add(r, Mark{Name: names[i], Value: next}, yield); err != nil {
			return err
		}
	}
	return nil
}

// seen finds the marks of records. It must check the marks under way before it asks the database:
// in the other order a mark that is committed meanwhile would be in neither.
func (t *totals) seen(ctx context.Context, records []row.Record) (names []string, seen map[string]string, err error) {
	names, seen = make([]string, len(records)), make(map[string]string, len(records))
	ask := make([]string, 0, len(records))
	t.mu.Lock()
	for i, r := range records {
		name := MarkName(t.Name(), r.Key)
		names[i] = name
		if _, twice := seen[name]; twice {
			continue
		}
		u, ok := t.underway[name]
		seen[name] = u.value
		if !ok {
			ask = append(ask, name)
		}
	}
	t.mu.Unlock()
	if len(ask) == 0 {
		return names, seen, nil
	}
	found, err := retry(ctx, t.run.cfg.Retry, func() ([]string, error) {
		return t.run.cfg.Sink.Marks(ctx, t.run.fence, ask)
	})
	if err != nil {
		return nil, nil, sinkError{fmt.Errorf("read the marks of %s: %w", t.Name(), err)}
	}
	for i, name := range ask {
		seen[name] = found[i]
	}
	return names, seen, nil
}

// add puts a difference into the page of its lane. A counter always has the same
// lane: of two of its marks the later one must be written last.
func (t *totals) add(r row.Record, m Mark, yield func(Page) error) error {
	lane := 0
	if len(t.filling) > 1 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.Key)) // it never fails
		lane = int(h.Sum32() % uint32(len(t.filling)))
	}
	b := t.filling[lane]
	if b == nil {
		b = &totalsPage{page: Page{Part: t.parts, Lane: lane}, marks: map[string]int{}}
		t.filling[lane] = b
		t.parts++
	}
	if i, twice := b.marks[m.Name]; twice {
		b.page.Marks[i] = m
	} else {
		b.marks[m.Name] = len(b.page.Marks)
		b.page.Marks = append(b.page.Marks, m)
	}
	b.page.Records = append(b.page.Records, b.own(r))
	t.mu.Lock()
	t.underway[m.Name] = underway{m.Value, b.page.Part}
	t.mu.Unlock()
	if len(b.page.Records) < t.run.cfg.BatchRows && b.bytes < totalsBytes {
		return nil
	}
	return t.deliver(lane, yield)
}

// own copies a record, so that it does not keep the whole page in memory.
func (b *totalsPage) own(r row.Record) row.Record {
	r.Key = strings.Clone(r.Key)
	r.Inputs = slices.Clone(r.Inputs)
	b.bytes += 2 * len(r.Key) // its mark's name has it too
	for i := range r.Inputs {
		r.Inputs[i].Text = strings.Clone(r.Inputs[i].Text)
		b.bytes += len(r.Inputs[i].Text)
	}
	return r
}

func (t *totals) deliver(lane int, yield func(Page) error) error {
	b := t.filling[lane]
	if b == nil {
		return nil
	}
	t.filling[lane] = nil
	return yield(b.page)
}

// settle replaces a record's total by the difference to its mark; changed is false without one.
// If the record becomes a dead letter later, its mark still moves: the dead letter has the
// difference, and its replay adds it once.
//
// A value that is no number has no difference. It becomes a dead letter once: the mark stays and
// records the refused value.
func (t *totals) settle(r *row.Record, seen string) (next string, changed bool, err error) {
	known, refused, err := parseMark(seen)
	if err != nil {
		return "", false, err
	}
	raw := r.Inputs[t.value]
	switch {
	case r.Gone || !raw.OK && r.Err == nil:
		return "", false, nil
	case r.Err == nil:
		total, err := readTotal(raw.Text)
		if err == nil {
			return t.grown(r, known, total)
		}
		r.Err = fmt.Errorf("%w, so it was not added; nothing will be lost by dropping this letter: once the counter is a number "+
			"again, all "+
			"beyond %s is added", err, cmp.Or(known, "0"))
	}
	sum := sha256.Sum256([]byte(raw.Text + "\x00" + r.Err.Error()))
	if refusal := fmt.Sprintf("%x", sum[:8]); refusal != refused {
		return known + refusedMark + refusal, true, nil
	}
	return "", false, nil
}

func (t *totals) grown(r *row.Record, known, total string) (next string, changed bool, err error) {
	difference, sign := subtract(total, cmp.Or(known, "0"))
	switch {
	case sign == 0:
		return "", false, nil
	case sign < 0 && known != "": // a new counter may be negative
		switch t.run.cfg.OnDecrease {
		case DecreaseSubtract:
		case DecreaseRestart:
			difference = total
		default:
			t.decreases.note(r.Key, total, known)
			return "", false, nil
		}
	}
	r.Inputs[t.value].Text = difference
	return total, true, nil
}

// decreases are the counters that a pass has skipped.
type decreases struct {
	count             int
	key, total, known string // of the first
}

func (d *decreases) note(key, total, known string) {
	if d.count == 0 {
		d.key, d.total, d.known = strings.Clone(key), total, known
	}
	d.count++
}

func (d *decreases) err(source string) error {
	if d.count == 0 {
		return nil
	}
	more := ""
	if d.count > 1 {
		more = fmt.Sprintf(" (and %d more)", d.count-1)
	}
	return fmt.Errorf("%w: counter %s%s of %s is %s, and the database has %s of it: was Redis restored from an earlier state, or was the "+
		"counter reset? "+
		"It was left alone and all others were flushed. Set `on_decrease: subtract` to subtract the difference, `on_decrease: "+
		"restart` if counters begin again at zero, or put the counter right",
		ErrDecreased, row.Quote(d.key), more, source, d.total, d.known)
}
