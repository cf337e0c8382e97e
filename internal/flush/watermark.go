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

// ErrDecreased means that a total is below its mark, and that on_decrease is "stop". The counter was not flushed, and an operator must
// decide what to do.
var ErrDecreased = errors.New("flush: a total has decreased")

// OnDecrease decides what happens if a counter's total is below its mark, the total that was flushed last.
type OnDecrease string

// These are the choices of on_decrease. The zero value means DecreaseStop.
const (
	DecreaseStop     OnDecrease = "stop"     // skip the counter and fail the run
	DecreaseSubtract OnDecrease = "subtract" // changes were undone: subtract the difference
	DecreaseRestart  OnDecrease = "restart"  // the counter restarted at zero: add the whole total
)

func (o OnDecrease) check() error {
	switch o {
	case "", DecreaseStop, DecreaseSubtract, DecreaseRestart:
		return nil
	}
	return fmt.Errorf("on_decrease: %q is unknown: use stop, subtract or restart", string(o))
}

// MarkName returns the name under which the database stores the mark of a source's counter. Different counters never share a name.
func MarkName(source, key string) string {
	// Only the source needs escaping, because the name ends at the first separator.
	return strings.NewReplacer("%", "%25", "#", "%23").Replace(source) + "#" + key
}

const (
	defaultBatchRows = 5000
	// totalsBytes limits the bytes of a batch, because long keys would make the batch too large before it has enough rows.
	totalsBytes = 8 << 20
)

// totals wraps a source of totals (row.ByMark). It delivers the new mark of each counter, and the counter's growth since its mark in the
// database. Growth and mark are written in one transaction, and the next pass starts from the committed mark. So nothing is lost or added
// twice. Unchanged counters are skipped.
//
// The reader is ahead of the writer, and a scan may return a counter again before the counter's mark is in the database. So totals
// remembers each mark until the page with the mark is committed.
type totals struct {
	Source
	run   *run
	value int // the index of the input $value

	parts     int
	filling   []*totalsPage // by lane
	decreases decreases

	mu       sync.Mutex
	underway map[string]underway // by the mark's name
}

// underway is a counter's mark that may not be in the database yet.
type underway struct {
	value string
	part  int // the part of the last page that sets the mark
}

// totalsPage is a page to which changed counters are still being added.
type totalsPage struct {
	page  Page
	marks map[string]int // maps the name of a mark to its index in page.Marks
	bytes int
}

// totals returns a source that wraps a source of totals.
func (r *run) totals(source Source) Releaser {
	return &totals{
		Source: source, run: r, value: slices.Index(r.m.Inputs(), row.InputValue),
		filling:  make([]*totalsPage, max(1, r.cfg.Lanes)),
		underway: map[string]underway{},
	}
}

// Read yields numbered pages of changed counters, so that the ledger recognises a page that is written again.
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

// Done forgets the marks of a page, because the database contains them now. It does not call Done of the wrapped source, which has not made
// these pages.
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

// page adds the changed counters of a page of the wrapped source to the pages that are being filled.
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

// seen returns the marks of records. It must look at the marks in t.underway before it asks the database. In the reverse order it could
// find a mark in neither place, if the mark is committed in between.
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

// add puts a difference into the page of its lane. The pages of one lane are written in order. All differences of a counter go to the same
// lane, because the counter's last mark must be written last.
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

// own copies a record, so that the record does not keep a whole page in memory.
func (b *totalsPage) own(r row.Record) row.Record {
	r.Key = strings.Clone(r.Key)
	r.Inputs = slices.Clone(r.Inputs)
	b.bytes += 2 * len(r.Key) // the name of the mark also contains the key
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

// settle replaces a record's total with the difference between the total and the mark. The result changed is false if there is no
// difference. If the record becomes a dead letter later, its mark still moves. The dead letter contains the difference, and the replay of
// the dead letter adds it once.
//
// A value that is no number has no difference. It becomes a dead letter only once, because the mark then records the refused value and
// keeps its total.
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
		r.Err = fmt.Errorf("%w, so it was not added; you can drop this letter without loss: once the counter is a number "+
			"again, baton adds its growth beyond %s", err, cmp.Or(known, "0"))
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

// decreases counts the counters that a pass has skipped because their totals decreased.
type decreases struct {
	count             int
	key, total, known string // the key, the total and the mark of the first of these counters
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
	return fmt.Errorf("%w: counter %s%s of %s is %s, but baton has already added %s to the database: was Redis restored from an earlier "+
		"state, or was the counter reset? "+
		"This counter was skipped, and all others were flushed. Set `on_decrease: subtract` to subtract the difference, `on_decrease: "+
		"restart` if counters begin again at zero, or correct the counter",
		ErrDecreased, row.Quote(d.key), more, source, d.total, d.known)
}
