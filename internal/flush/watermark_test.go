package flush_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// fakeTotals reads memory.total as a scan does: it may return a counter again, with the total that it has then.
type fakeTotals struct {
	*memory
	*faults
	inputs []string
}

func (s *fakeTotals) Name() string { return "totals" }

func (s *fakeTotals) Stage(_ context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	err = s.around("stage", func() error {
		st, ok = flush.Stage{ID: newID}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeTotals) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	s.memory.mu.Lock()
	fields := slices.Sorted(maps.Keys(s.total))
	s.memory.mu.Unlock()
	chunks := slices.Collect(slices.Chunk(fields, fakePage))
	order := make([][]string, 0, 2*len(chunks))
	for i, chunk := range chunks {
		order = append(order, chunk, chunks[max(0, i-1)])
	}
	for _, chunk := range order {
		p := flush.Page{Part: -1}
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			for _, f := range chunk {
				p.Records = append(p.Records, recordFrom(s.inputs, f,
					map[string]string{row.InputField: f, row.InputValue: strconv.FormatInt(s.total[f], 10)}))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeTotals) Done(context.Context, flush.Stage, flush.Page) error {
	return errors.New("the source is told of a page that it has not delivered")
}

// ledgerOfTotals is a job that reads exactly these pages of totals.
type ledgerOfTotals struct {
	t       rapid.TB
	w       *world
	source  *flushtest.Script
	pages   [][]string // each has names and totals
	cfg     flush.Config
	applied []flush.Batch
}

func newLedgerOfTotals(t rapid.TB, kind row.Kind) *ledgerOfTotals {
	w := newWorld("totals")
	w.db.SetTable(row.Table{Name: "counts", Unique: [][]string{{"name"}}, Columns: []row.Column{
		{Name: "name", Kind: row.KindText, MaxChars: 20}, {Name: "n", Kind: kind, Bits: 64},
	}})
	l := &ledgerOfTotals{t: t, w: w, source: flushtest.NewScript("totals"), cfg: w.config(nil)}
	l.cfg.Sink = &watchedSink{fakeSink: fakeSink{base: w.db}, applied: &l.applied}
	l.source.On = failing("done") // the source did not deliver the pages that a flush writes
	l.cfg.NewSources = func(inputs []string) ([]flush.Source, error) { return []flush.Source{l.open(inputs)}, nil }
	return l
}

// open makes the source deliver its pages, as records with these inputs.
func (l *ledgerOfTotals) open(inputs []string) flush.Source {
	var pages []flush.Page
	for _, pairs := range l.pages {
		p := flush.Page{Part: -1}
		for pair := range slices.Chunk(pairs, 2) {
			p.Records = append(p.Records, recordFrom(inputs, pair[0], map[string]string{row.InputField: pair[0], row.InputValue: pair[1]}))
		}
		pages = append(pages, p)
	}
	l.source.SetPages(pages...)
	return l.source
}

// watchedSink remembers the batches.
type watchedSink struct {
	fakeSink
	mu      sync.Mutex
	applied *[]flush.Batch
}

func (s *watchedSink) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	s.mu.Lock()
	*s.applied = append(*s.applied, b)
	s.mu.Unlock()
	return s.fakeSink.Apply(ctx, f, p, b)
}

func (l *ledgerOfTotals) compile() (*mapping.Mapping, error) {
	table, err := l.w.db.Table(context.Background(), "counts")
	if err != nil {
		return nil, err
	}
	return mapping.Compile(l.cfg.Mapping, table, l.cfg.Inputs)
}

func (l *ledgerOfTotals) run(pages ...[]string) error {
	l.pages, l.applied = pages, nil
	_, err := mustNew(l.t, l.cfg).Run(context.Background(), l.w.elect())
	return err
}

// mustRun runs over pages and then compares the table, as "name=n …".
func (l *ledgerOfTotals) mustRun(want string, pages ...[]string) {
	if t, ok := l.t.(*testing.T); ok {
		t.Helper()
	}
	if err := l.run(pages...); err != nil {
		l.t.Fatal(err)
	}
	l.check(want)
}

func (l *ledgerOfTotals) check(want string) {
	if t, ok := l.t.(*testing.T); ok {
		t.Helper()
	}
	var got []string
	for name, n := range l.w.db.Rows("counts", "n") {
		got = append(got, name+"="+n)
	}
	slices.Sort(got)
	if s := strings.Join(got, " "); s != want {
		l.t.Errorf("the table has %s, want %s", s, want)
	}
}

func TestTotalsAreFlushedByTheirDifference(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.mustRun("a=5 b=7", []string{"a", "5", "b", "7", "zero", "0"})
	l.mustRun("a=5 b=7", []string{"a", "5", "b", "7", "zero", "0"})
	if len(l.applied) != 0 {
		t.Errorf("nothing has changed, and %d batches were written", len(l.applied))
	}
	l.mustRun("a=6 b=7 c=-3", []string{"a", "6", "b", "7", "c", "-3"})
	if rows := l.applied[0].Rows; len(rows) != 2 || l.applied[0].Part != 0 {
		t.Errorf("batch %d has %d rows, want a and c alone", l.applied[0].Part, len(rows))
	}
	if got := l.w.db.Mark("job", flush.MarkName("totals", "a")); got != "6" {
		t.Errorf("the mark of a is %q", got)
	}
}

// The reader is ahead of the writer. A counter that it returns twice must not be added twice because its mark is not in the database yet.
func TestCounterThatComesAgainIsAddedOnce(t *testing.T) {
	for _, rows := range []int{1, 2, 3, 100} {
		for _, lanes := range []int{1, 3} {
			l := newLedgerOfTotals(t, row.KindInteger)
			l.cfg.BatchRows, l.cfg.Lanes = rows, lanes
			l.mustRun("a=9 b=5 c=1 d=4",
				[]string{"a", "5", "a", "5", "b", "2", "a", "6"}, // in the same page, and in the next one
				[]string{"a", "6", "b", "2", "c", "1"},
				[]string{"a", "9", "b", "5", "d", "4"},
				[]string{"a", "9"})
			l.mustRun("a=9 b=5 c=1 d=4", []string{"a", "9", "b", "5", "c", "1", "d", "4"})
		}
	}
}

// Committed marks must be forgotten, so that the memory does not grow during the pass.
func TestMarksUnderWayAreForgottenOnceTheyAreWritten(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.cfg.BatchRows = 10
	var pages [][]string
	for page := range 50 {
		var pairs []string
		for i := range 10 {
			pairs = append(pairs, fmt.Sprintf("k%d", page*10+i), "1")
		}
		pages = append(pages, pairs)
	}
	m, err := l.compile()
	if err != nil {
		t.Fatal(err)
	}
	l.pages = pages
	s := flush.TotalsOf(mustNew(t, l.cfg), m, l.open(m.Inputs()))
	var waiting []flush.Page
	err = s.Read(context.Background(), flush.Stage{}, func(p flush.Page) error {
		if waiting = append(waiting, p); len(waiting) == 3 { // the writer is two pages behind
			_ = s.Done(context.Background(), flush.Stage{}, waiting[0])
			waiting = waiting[1:]
		}
		if n := s.Underway(); n > 30 {
			t.Fatalf("%d marks are held", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range waiting {
		_ = s.Done(context.Background(), flush.Stage{}, p)
	}
	if s.Underway() != 0 {
		t.Errorf("%d marks are held after the pass", s.Underway())
	}
}

// lateSink calls late after it has read marks and before it returns them.
type lateSink struct {
	fakeSink
	late func()
}

func (s *lateSink) Marks(ctx context.Context, f flush.Fence, names []string) ([]string, error) {
	found, err := s.fakeSink.Marks(ctx, f, names)
	s.late()
	return found, err
}

// The previous page may be committed, and its marks forgotten, while the database returns the older marks.
func TestMarkThatIsCommittedWhileMarksAreReadCounts(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.cfg.BatchRows = 1
	l.pages = [][]string{{"a", "5"}, {"a", "5", "b", "1"}}
	sink := &lateSink{fakeSink: fakeSink{base: l.w.db}}
	l.cfg.Sink = sink
	m, err := l.compile()
	if err != nil {
		t.Fatal(err)
	}
	s := flush.TotalsOf(mustNew(t, l.cfg), m, l.open(m.Inputs()))
	var pages []flush.Page
	committed := 0
	sink.late = func() {
		committed += len(pages)
		for _, p := range pages {
			for _, m := range p.Marks {
				l.w.db.SetMark("job", m.Name, m.Value)
			}
			_ = s.Done(context.Background(), flush.Stage{}, p)
		}
	}
	if err := s.Read(context.Background(), flush.Stage{}, func(p flush.Page) error { pages = append(pages, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if committed != 1 || len(pages) != 2 || pages[1].Records[0].Key != "b" {
		t.Errorf("%d pages were committed meanwhile; pages: %+v", committed, pages)
	}
}

func TestBatchesOfTotalsAreNumberedAndBounded(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.cfg.BatchRows = 2
	l.mustRun("a=1 b=1 c=1 d=1 e=1", []string{"a", "1", "b", "1", "c", "1"}, []string{"d", "1"}, []string{"e", "1"})
	for i, b := range l.applied {
		if b.Part != i || len(b.Rows) > 2 || b.ID != l.applied[0].ID {
			t.Errorf("batch %d is part %d of %s with %d rows", i, b.Part, b.ID, len(b.Rows))
		}
	}
	if len(l.applied) != 3 {
		t.Errorf("%d batches", len(l.applied))
	}
	long := strings.Repeat("x", flush.TotalsBytes/4)
	l.cfg.BatchRows = 100
	_ = l.run([]string{"1" + long, "1", "2" + long, "1", "3" + long, "1", "4" + long, "1"})
	if len(l.applied) < 2 {
		t.Errorf("%d batches of keys that are 8 MiB together", len(l.applied))
	}
}

func TestTotalThatDecreasedStopsOrSubtractsOrRestarts(t *testing.T) {
	for _, c := range []struct {
		on   flush.OnDecrease
		want string
	}{
		{"", "a=10 b=10 c=1 d=2"},
		{flush.DecreaseStop, "a=10 b=10 c=1 d=2"},
		{flush.DecreaseSubtract, "a=7 b=-2 c=1 d=2"},
		{flush.DecreaseRestart, "a=17 b=8 c=1 d=2"},
	} {
		l := newLedgerOfTotals(t, row.KindInteger)
		l.cfg.OnDecrease = c.on
		l.mustRun("a=10 b=10", []string{"a", "10", "b", "10"})
		err := l.run([]string{"c", "1", "a", "7", "b", "-2", "d", "2"})
		if stop := c.on == "" || c.on == flush.DecreaseStop; stop != errors.Is(err, flush.ErrDecreased) || err != nil && !stop {
			t.Errorf("%q: %v", c.on, err)
		}
		if err != nil {
			for _, says := range []string{`"a" (and 1 more) of totals is 7`, "has already added 10 to the database",
				"on_decrease: subtract", "on_decrease: restart"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		}
		l.check(c.want) // the other counters are flushed in any case
	}
	if _, err := flush.New(flush.Config{Policy: flush.Policy{OnDecrease: "shrug"}}); err == nil ||
		!strings.Contains(err.Error(), "on_decrease") {
		t.Errorf("an unknown choice: %v", err)
	}
}

// The dead letter has the difference, and the mark moves. So a replay of the letter adds the difference once.
func TestDeadLetterOfATotalHasTheDifference(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	long := strings.Repeat("n", 21) // longer than its column
	l.mustRun("a=1", []string{"a", "1", long, "5"})
	l.mustRun("a=1", []string{"a", "1", long, "5"})
	l.mustRun("a=1", []string{"a", "1", long, "12"})
	l.dead(`"$value":"5"`, `"$value":"7"`)
}

// dead compares the dead letters: each must contain one of the texts.
func (l *ledgerOfTotals) dead(want ...string) {
	l.t.(*testing.T).Helper()
	if len(l.w.db.Dead()) != len(want) {
		l.t.Errorf("%d dead letters, want %d: %v", len(l.w.db.Dead()), len(want), l.w.db.Dead())
	}
	for _, text := range want {
		found := false
		for _, d := range l.w.db.Dead() {
			found = found || strings.Contains(d.Record+d.Error, text)
		}
		if !found {
			l.t.Errorf("no dead letter has %s: %v", text, l.w.db.Dead())
		}
	}
}

// A value that is no number is reported once and not in each pass, and no growth is lost.
func TestTotalThatIsNoNumberIsToldOnce(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.mustRun("a=5", []string{"a", "5"})
	l.mustRun("a=5 b=1", []string{"a", "many", "b", "1"})
	l.mustRun("a=5 b=1", []string{"a", "many", "b", "1"})
	l.dead(`"many" is not a decimal number`)
	l.mustRun("a=5 b=1", []string{"a", "1e2000", "b", "1"})
	l.mustRun("a=5 b=1", []string{"a", strings.Repeat("9", 201), "b", "1"})
	l.mustRun("a=5 b=1", []string{"c", "NaN", "c", "NaN"})
	l.dead("many", "exponent", "more than 200 digits", "NaN")
	l.mustRun("a=8 b=1 c=-2", []string{"a", "8", "c", "-2"})
	l.dead("many", "exponent", "more than 200 digits", "NaN")
	for _, name := range []string{"a", "c"} {
		if mark := l.w.db.Mark("job", flush.MarkName("totals", name)); strings.Contains(mark, "refused") {
			t.Errorf("mark of %s: %q", name, mark)
		}
	}
}

func TestMarkThatIsNoNumberEndsTheRun(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	l.w.db.SetMark("job", flush.MarkName("totals", "a"), "much")
	err := l.run([]string{"a", "5"})
	if err == nil || !strings.Contains(err.Error(), `mark "totals#a" of job "job"`) || !strings.Contains(err.Error(), `"much"`) {
		t.Errorf("run: %v", err)
	}
}

func TestDecimalTotalsAreSubtractedExactly(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindNumeric)
	l.mustRun("a=0.1 b=10", []string{"a", "0.1", "b", "1e1"})
	l.mustRun("a=0.30000000000000004 b=10", []string{"a", "0.30000000000000004", "b", "10.00"})
	l.mustRun("a=0.30000000000000004 b=10", []string{"a", "3.0000000000000004e-1", "b", "+10"})
	if len(l.applied) != 0 {
		t.Error("the same number written otherwise was taken for another")
	}
	l.mustRun("a=12345678901234567890.5 b=9223372036854775808", []string{"a", "12345678901234567890.5", "b", "9223372036854775808"})
}

// If reading the marks shows that the fence is lost, the next run takes the fence again.
func TestFenceLostWhileMarksAreReadStopsTheRun(t *testing.T) {
	l := newLedgerOfTotals(t, row.KindInteger)
	p := mustNew(t, l.cfg)
	l.pages = [][]string{{"a", "1"}, {"b", "1"}}
	l.source.On = on("taken", func() error {
		l.w.db.SetFence(flush.Fence{Job: "job", Epoch: 99, Owner: "another"})
		return nil
	})
	_, err := p.Run(context.Background(), l.w.elect())
	if !errors.Is(err, flush.ErrFenced) || flush.OfASource(err) || p.Taken() != (flush.Fence{}) {
		t.Errorf("run: %v; taken %+v", err, p.Taken())
	}
	if len(l.applied) != 0 {
		t.Error("something was written")
	}
}

func TestMarkNamesAreNeverShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[#%a25:3]{0,6}`)
		a, x, b, y := text.Draw(t, "source"), text.Draw(t, "key"), text.Draw(t, "other source"), text.Draw(t, "other key")
		if (a != b || x != y) && flush.MarkName(a, x) == flush.MarkName(b, y) {
			t.Errorf("%q of %q and %q of %q are both %q", x, a, y, b, flush.MarkName(a, x))
		}
	})
}

func TestSubtractionIsExact(t *testing.T) {
	number := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strconv.FormatInt(rapid.Int64().Draw(t, "n"), 10) }),
		rapid.StringMatching(`-?[0-9]{1,25}(\.[0-9]{1,20})?(e-?[0-9]{1,2})?`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "total"), number.Draw(t, "known")
		total, errA := flush.ReadTotal(a)
		known, errB := flush.ReadTotal(b)
		if errA != nil || errB != nil {
			t.Skip("too long")
		}
		got, sign := flush.Subtract(total, known)
		want := decimal.RequireFromString(a).Sub(decimal.RequireFromString(b))
		if !decimal.RequireFromString(got).Equal(want) || sign != want.Sign() {
			t.Errorf("%s - %s = %s (%d), want %s", a, b, got, sign, want)
		}
		if again, err := flush.ReadTotal(total); again != total || err != nil {
			t.Errorf("%s reads as %s and then as %s, %v", a, total, again, err)
		}
		if equal := decimal.RequireFromString(a).Equal(decimal.RequireFromString(b)); equal != (total == known) {
			t.Errorf("%s and %s are written %s and %s", a, b, total, known)
		}
	})
}

// For random totals, pages, batches and lanes, the table has the totals of the last pass.
func TestTotalsOfAnyPassesEndUpInTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedgerOfTotals(t, row.KindInteger)
		l.cfg.OnDecrease = flush.DecreaseSubtract
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		totals := map[string]int64{}
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			l.cfg.BatchRows = rapid.IntRange(1, 8).Draw(t, "rows")
			l.cfg.Lanes = rapid.IntRange(1, 3).Draw(t, "lanes")
			var pages [][]string
			for range rapid.IntRange(1, 8).Draw(t, "pages") {
				var pairs []string
				for range rng.IntN(8) {
					name := fmt.Sprint("k", rng.IntN(10))
					totals[name] += int64(rng.IntN(7)) - 2
					pairs = append(pairs, name, strconv.FormatInt(totals[name], 10))
				}
				pages = append(pages, pairs)
			}
			if err := l.run(pages...); err != nil {
				t.Fatal(err)
			}
		}
		for name, n := range totals {
			text, ok := l.w.db.Rows("counts", "n")[name]
			if ok && text != strconv.FormatInt(n, 10) || !ok && n != 0 {
				t.Errorf("%s is %s, want %d", name, text, n)
			}
		}
	})
}
