package flush_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

var errCrash = errors.New("the process died here")

// world is one Redis, one database and the nodes that flush from one to the other.
type world struct {
	mem   *memory
	db    *base
	kind  string // one of kinds
	epoch int64
	ids   int
}

func newWorld(kind string) *world {
	return &world{mem: newMemory(), kind: kind, db: newBase(
		row.Table{Name: "counts", Unique: [][]string{{"name"}}, Columns: []row.Column{
			{Name: "name", Kind: row.KindText}, {Name: "n", Kind: row.KindInteger, Bits: 64},
		}},
		row.Table{Name: "users", Unique: [][]string{{"id"}}, Columns: []row.Column{
			{Name: "id", Kind: row.KindInteger, Bits: 64}, {Name: "name", Kind: row.KindText, Nullable: true},
		}},
	)}
}

// kinds returns the sources of a world: increments, totals, states, and two sources of ordered events, which several lanes write.
func kinds() []string { return []string{"counters", "totals", "hashes", "list", "stream"} }

func inOrder(kind string) bool { return kind == "list" || kind == "stream" }

// config returns the configuration of a new process of the job.
func (w *world) config(f *faults) flush.Config {
	cfg := flush.Config{
		Job: "job", NodeID: "node", Sink: &fakeSink{base: w.db, faults: f},
		NewID: func() (string, error) { w.ids++; return "id" + strconv.Itoa(w.ids), nil },
	}
	if inOrder(w.kind) {
		return w.queue(cfg, f)
	}
	if w.kind != "hashes" {
		cfg.Inputs = row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByLedger}
		cfg.Mapping = mapping.Spec{Table: "counts", Key: []string{"name"},
			Columns: map[string]mapping.ColumnSpec{"name": {From: row.InputField}, "n": {From: row.InputValue}}}
		cfg.NewSources = func(inputs []string) ([]flush.Source, error) {
			if w.kind == "totals" {
				return []flush.Source{&fakeTotals{memory: w.mem, faults: f, inputs: inputs}}, nil
			}
			return []flush.Source{&fakeCounters{memory: w.mem, faults: f, inputs: inputs}}, nil
		}
		if w.kind == "totals" {
			cfg.Inputs.Guarantee, cfg.BatchRows = row.ByMark, fakePage+1
		}
		return cfg
	}
	cfg.Inputs, cfg.OnMissing = row.Inputs{Names: []string{"id"}, Fields: true}, mapping.MissingDelete
	cfg.Mapping = mapping.Spec{Table: "users", Key: []string{"id"}}
	cfg.NewSources = func(inputs []string) ([]flush.Source, error) {
		return []flush.Source{&fakeHashes{memory: w.mem, faults: f, inputs: inputs}}, nil
	}
	return cfg
}

// elect returns the next leader.
func (w *world) elect() *fakeLead {
	w.epoch++
	return &fakeLead{owner: fmt.Sprint("owner", w.epoch), epoch: w.epoch}
}

func mustNew(t rapid.TB, cfg flush.Config) *flush.Pipeline {
	t.Helper()
	p, err := flush.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// produce makes changes that depend only on n.
func (w *world) produce(n int) {
	w.mem.count("c"+strconv.Itoa(n%8), int64(n%5+1))
	w.mem.push(strconv.Itoa(n*7%11), "v"+strconv.Itoa(n))
	if id := strconv.Itoa(n * 7 % 11); n%6 == 5 {
		w.mem.remove(id)
	} else {
		w.mem.set(id, "v"+strconv.Itoa(n))
	}
}

// backlog returns the number of changes that still wait in the sources.
func (w *world) backlog() (int64, error) {
	sources, err := w.config(nil).NewSources(nil)
	if err != nil {
		return 0, err
	}
	return flush.Backlog(context.Background(), sources)
}

// audit lets a healthy leader finish, and compares the database with the data in memory.
func (w *world) audit() error {
	p, err := flush.New(w.config(nil))
	if err != nil {
		return err
	}
	if _, err := p.Run(context.Background(), w.elect()); err != nil {
		return fmt.Errorf("the last run failed: %w", err)
	}
	if n, err := w.backlog(); n != 0 || err != nil {
		return fmt.Errorf("backlog is %d after the last run: %w", n, err)
	}
	want := map[string]string{}
	switch {
	case inOrder(w.kind):
		want = w.mem.latest()
	case w.kind != "hashes":
		for field, n := range w.mem.total {
			want[field] = strconv.FormatInt(n, 10)
		}
	default:
		maps.Copy(want, w.mem.hashes)
	}
	got := w.db.Rows("users", "name")
	maps.Copy(got, w.db.Rows("counts", "n"))
	if diff := gocmp.Diff(want, got); diff != "" {
		return fmt.Errorf("database differs from what was written (-written +flushed):\n%s", diff)
	}
	return nil
}

// comesBy reports whether a run of a kind of source passes a step. No kind is a scan, and totals have nothing to remove.
func comesBy(kind, step string) bool {
	switch step {
	case "rows-found", "before-sweep", "counted", "stale-counted", "stale-read", "rechecked", "swept":
		return false
	case "position-read":
		return kind == "stream"
	case "before-turn", "in-turn":
		return inOrder(kind)
	case "before-done", "done", "before-discard", "discarded":
		return kind != "totals"
	case "before-marks", "marks-read":
		return kind == "totals"
	}
	return true
}

// nth returns true only at the n-th call.
func nth(n int) func() bool {
	calls := 0
	return func() bool { calls++; return calls == n }
}

func TestEveryStepSurvivesACrash(t *testing.T) {
	for _, kind := range kinds() {
		for _, step := range steps() {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprint(kind, " ", step, " ", n), func(t *testing.T) {
					w := newWorld(kind)
					for i := range 20 {
						w.produce(i)
					}
					crash, crashed := nth(n), false
					cfg := w.config(nil)
					cfg = observed(cfg, func(s string) error {
						if s == step && crash() {
							crashed = true
							return errCrash
						}
						return nil
					})
					_, err := mustNew(t, cfg).Run(context.Background(), w.elect())
					if crashed != errors.Is(err, errCrash) {
						t.Errorf("crashed: %v, but the run ended with %v", crashed, err)
					}
					if n == 1 && crashed != comesBy(kind, step) {
						t.Errorf("came by this step: %v", crashed)
					}
					for i := range 7 {
						w.produce(100 + i) // while no node leads
					}
					if err := w.audit(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

func TestEveryLostRequestAndReplyIsSurvived(t *testing.T) {
	for _, kind := range kinds() {
		for _, call := range []string{"table", "take over", "stage", "read", "positions", "apply", "done", "discard"} {
			for _, reply := range []bool{false, true} {
				for n := 1; n <= 3; n++ {
					t.Run(fmt.Sprint(kind, " ", call, " reply ", reply, " ", n), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { // so that retries need not really wait
							w := newWorld(kind)
							for i := range 20 {
								w.produce(i)
							}
							lose := nth(n)
							f := &faults{plan: func(c string) (before, after bool) {
								hit := c == call && lose()
								return hit && !reply, hit && reply
							}}
							_, err := mustNew(t, w.config(f)).Run(context.Background(), w.elect())
							if err != nil && (!errors.Is(err, errLost) || call == "apply" || call == "take over") {
								t.Errorf("run ended with %v", err)
							}
							if err := w.audit(); err != nil {
								t.Error(err)
							}
						})
					})
				}
			}
		}
	}
}

func TestADeposedLeaderThatWakesUpWritesNothing(t *testing.T) {
	for _, kind := range kinds() {
		for _, step := range steps() {
			t.Run(fmt.Sprint(kind, " ", step), func(t *testing.T) {
				w := newWorld(kind)
				for i := range 20 {
					w.produce(i)
				}
				asleep := nth(1)
				cfg := w.config(nil)
				old := w.elect()
				old.raise = func(int64) (int64, error) { return 0, errors.New("the lock is somebody else's") }
				cfg = observed(cfg, func(s string) error {
					if s != step || !asleep() {
						return nil
					}
					// While this leader sleeps, its successors flush everything, twice.
					for round := range 2 {
						for i := range 13 {
							w.produce(100*round + i)
						}
						if err := w.audit(); err != nil {
							t.Error(err)
						}
					}
					return nil
				})
				_, err := mustNew(t, cfg).Run(context.Background(), old)
				late := step == "discarded" // it had finished before
				if fenced := errors.Is(err, flush.ErrFenced) || errors.Is(err, flush.ErrStaleStage); !fenced && !late && err != nil {
					t.Errorf("run ended with %v", err)
				}
				want := flush.ErrFenced
				if kind == "counters" || kind == "list" { // the ledger has the batch, and is asked before the fence
					want = flush.ErrStaleStage
				}
				if step == "before-apply" && !errors.Is(err, want) {
					t.Errorf("run ended with %v, want %v", err, want)
				}
				if err := w.audit(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestRandomFaults mixes everything: traffic, crashes at any step, lost requests and replies of any call, and successors that take over in
// the middle of a run.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SampledFrom(kinds()).Draw(t, "source"))
		rate := rapid.IntRange(2, 40).Draw(t, "one fault in")
		// Both goroutines of a run draw numbers, and rapid allows only one.
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var mu sync.Mutex
		upTo := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n + 1) }
		dice := func() bool { return upTo(rate-1) == 0 }
		traffic := 0
		produce := func(most int) {
			for range upTo(most) {
				traffic++
				w.produce(traffic)
			}
		}
		lead := w.elect()
		var broken error
		fresh := func() *flush.Pipeline {
			cfg := w.config(&faults{plan: func(string) (bool, bool) { return dice(), dice() }})
			cfg.Retry = flush.Retry{Attempts: 3, Wait: 1, MaxWait: 1}
			cfg = observed(cfg, func(string) error {
				produce(2)
				if dice() { // a successor runs while this leader stands still
					lead.mu.Lock()
					lead.raise = func(int64) (int64, error) { return 0, errors.New("the lock is somebody else's") }
					lead.mu.Unlock()
					successor, _ := flush.New(w.config(nil))
					if _, err := successor.Run(context.Background(), w.elect()); err != nil {
						broken = err
					}
				}
				if dice() {
					return errCrash
				}
				return nil
			})
			return mustNew(t, cfg)
		}
		p := fresh()
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			produce(25)
			_, err := p.Run(context.Background(), lead)
			if errors.Is(err, flush.ErrFenced) || errors.Is(err, errCrash) {
				lead = w.elect()
				p = fresh()
			}
		}
		if err := errors.Join(broken, w.audit()); err != nil {
			t.Fatal(err)
		}
	})
}
