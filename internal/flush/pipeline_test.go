package flush_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// errRefused is the error of a source that fails.
var errRefused = errors.New("WRONGTYPE")

// failing makes calls with this name fail.
func failing(call string) func(string) error {
	return on(call, func() error { return errRefused })
}

// hooked makes a source call on.
func hooked(on func(string) error, s *flushtest.Script) *flushtest.Script {
	s.On = on
	return s
}

// on calls act at calls with this name.
func on(call string, act func() error) func(string) error {
	return func(called string) error {
		if called != call {
			return nil
		}
		return act()
	}
}

// user returns a page with one row of the users table.
func user(id, name string) flush.Page {
	return flush.Page{Part: -1, Records: []row.Record{{Key: id, Inputs: []row.Raw{{Text: id, OK: true}, {Text: name, OK: true}}}}}
}

// sinkFunc lets a test observe or replace Apply.
type sinkFunc struct {
	*fakeSink
	apply func(context.Context, flush.Fence, *row.Plan, flush.Batch) (flush.Outcome, error)
}

func (s *sinkFunc) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	return s.apply(ctx, f, p, b)
}

// users returns a configuration with these sources, and its database.
func users(sources ...flush.Source) (flush.Config, *base) {
	w := newWorld("hashes")
	cfg := w.config(nil)
	cfg.NewSources = func([]string) ([]flush.Source, error) { return sources, nil }
	return cfg, w.db
}

func leader(epoch int64) *fakeLead { return &fakeLead{owner: fmt.Sprint("owner", epoch), epoch: epoch} }

func TestNewRefusesAnIncompleteConfiguration(t *testing.T) {
	_, err := flush.New(flush.Config{Job: "j", Policy: flush.Policy{OnMissing: "drop"}})
	for _, want := range []string{"NodeID is not set", "Sink is not set", "NewSources is not set", "NewID is not set",
		"Mapping.Table is not set", `on_missing: "drop" is unknown`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestARunTellsWhatItDid(t *testing.T) {
	s := flushtest.NewScript("s", user("1", "Ann"), user("x", "Bob"), flush.Page{Part: -1})
	cfg, db := users(s)
	var stats []flush.BatchStats
	cfg.OnBatch = func(b flush.BatchStats) { stats = append(stats, b) }
	got, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err != nil || got != (flush.Result{Rows: 1, Dead: 1, Batches: 2}) {
		t.Errorf("result is %+v, %v", got, err)
	}
	if len(stats) != 2 || stats[0].Source != "s" || stats[0].Rows != 1 || stats[1].Dead != 1 || !stats[0].Applied ||
		stats[0].Bytes != int64(len("1"+"1"+"Ann")) || stats[0].Lag < stats[0].Took {
		t.Errorf("stats are %+v", stats)
	}
	for _, d := range db.Dead() {
		if d.Record != `{"key":"x","id":"x","name":"Bob"}` ||
			d.Error != `column "id" (integer): "x" is not a whole number in decimal digits` {
			t.Errorf("dead letter is %+v", d)
		}
	}
	if want := "stage done done done discard"; strings.Join(s.Calls(), " ") != want {
		t.Errorf("calls were %q, want %q", s.Calls(), want)
	}
}

func TestTheLedgersVerdictIsCounted(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s", user("1", "Ann")))
	cfg.Sink = &sinkFunc{&fakeSink{base: db}, func(context.Context, flush.Fence, *row.Plan, flush.Batch) (flush.Outcome, error) {
		return flush.Outcome{}, nil
	}}
	if got, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil || got != (flush.Result{Skipped: 1}) {
		t.Errorf("result is %+v, %v", got, err)
	}
}

// While one page is written, another one is converted and waits, and a third one is read. If the pages are small, one more waits.
func TestReadingIsAheadOfWriting(t *testing.T) {
	for length, ahead := range map[int]int{1: 3, 4 << 20: 1} {
		synctest.Test(t, func(t *testing.T) {
			var pages []flush.Page
			for i := range 8 {
				pages = append(pages, user(fmt.Sprint(i), strings.Repeat("a", length)))
			}
			read := 0
			s := hooked(on("page", func() error {
				read++
				return nil
			}), flushtest.NewScript("s", pages...))
			cfg, db := users(s)
			sink := &fakeSink{base: db}
			written := 0
			cfg.Sink = &sinkFunc{sink, func(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
				synctest.Wait() // the reader has read as much as it can while this page is written
				if want := min(written+1+ahead, 8); read != want {
					t.Errorf("%d pages read while page %d of %d bytes is written, want %d", read, written+1, length, want)
				}
				written++
				return sink.Apply(ctx, f, p, b)
			}}
			if _, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil || written != 8 {
				t.Errorf("%d pages written, %v", written, err)
			}
		})
	}
}

// The previous page is removed from its stage while the next one is written. No third page is written before that removal has succeeded.
func TestRemovingIsOnePageBehindWriting(t *testing.T) {
	for _, ok := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := flushtest.NewScript("s", user("1", "a"), user("2", "b"), user("3", "c"))
			removing := make(chan struct{})
			s.On = on("done", func() error {
				<-removing
				if !ok {
					return errRefused
				}
				return nil
			})
			cfg, db := users(s)
			sink, applied := &fakeSink{base: db}, 0
			cfg.Sink = &sinkFunc{sink, func(c context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
				applied++
				return sink.Apply(c, f, p, b)
			}}
			ended := make(chan error)
			go func() {
				_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
				ended <- err
			}()
			synctest.Wait()
			if applied != 2 {
				t.Errorf("%d pages were written while the first was being removed, want 2", applied)
			}
			close(removing)
			err := <-ended
			switch {
			case ok && (err != nil || applied != 3):
				t.Errorf("run ended with %v after %d pages", err, applied)
			case !ok && (!errors.Is(err, errRefused) || applied != 2 || slices.Contains(s.Calls(), "discard")):
				t.Errorf("run ended with %v after %d pages, with calls %q", err, applied, s.Calls())
			}
		})
	}
}

func TestAnUnknownOutcomeIsTriedAgainWithTheSameBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, db := users(flushtest.NewScript("s", user("1", "a")))
		var tried []string
		cfg.Sink = &sinkFunc{&fakeSink{base: db}, func(
			_ context.Context, _ flush.Fence, _ *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			tried = append(tried, fmt.Sprint(b.ID, b.Part, b.Rows[0].Values))
			return flush.Outcome{}, fmt.Errorf("deadlock: %w", flush.ErrTransient)
		}}
		began := time.Now()
		_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
		if !errors.Is(err, flush.ErrTransient) || !strings.Contains(err.Error(), `write a batch of s to table "users"`) {
			t.Errorf("run ended with %v", err)
		}
		if len(tried) != 5 || tried[0] != tried[4] {
			t.Errorf("tried %q", tried)
		}
		if waited := time.Since(began); waited < 100*time.Millisecond || waited > 3*time.Second {
			t.Errorf("waited %v between the attempts", waited)
		}
	})
}

func TestNothingIsBegunOnceLeadershipHasEnded(t *testing.T) {
	over := errors.New("trust window closed")
	for _, end := range []string{"before-take-over", "taken-over", "staged", "page-read", "before-apply", "done"} {
		t.Run(end, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			pages := []flush.Page{user("1", "a"), user("2", "b")}
			if end == "done" {
				pages = pages[:1] // a second page may be on its way while the first is released
			}
			cfg, db := users(flushtest.NewScript("s", pages...))
			sink := &fakeSink{base: db}
			cfg.Sink = &sinkFunc{sink, func(c context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
				if c.Err() != nil {
					t.Error("a batch was begun after the end")
				}
				return sink.Apply(c, f, p, b)
			}}
			ended := false
			var begun []string
			cfg = observed(cfg, func(s string) error {
				if ended && (s == "taken-over" || s == "before-apply" || s == "before-stage" || s == "before-discard") {
					begun = append(begun, s)
				}
				if s == end && !ended {
					ended = true
					stop(over)
				}
				return nil
			})
			_, err := mustNew(t, cfg).Run(ctx, leader(1))
			if !errors.Is(err, over) {
				t.Errorf("run ended with %v, want the cause", err)
			}
			if len(begun) > 0 {
				t.Errorf("%v came after the end", begun)
			}
		})
	}
}

func TestWaitingForTheDatabaseEndsWithLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("lease lost")
		ctx, stop := context.WithCancelCause(t.Context())
		cfg, db := users(flushtest.NewScript("s", user("1", "a"), user("2", "b")))
		cfg.Retry = flush.Retry{Attempts: 100, Wait: time.Hour, MaxWait: time.Hour}
		cfg.Sink = &sinkFunc{&fakeSink{base: db}, func(context.Context, flush.Fence, *row.Plan, flush.Batch) (flush.Outcome, error) {
			return flush.Outcome{}, flush.ErrTransient
		}}
		time.AfterFunc(time.Second, func() { stop(over) })
		began := time.Now()
		if _, err := mustNew(t, cfg).Run(ctx, leader(1)); !errors.Is(err, over) || time.Since(began) != time.Second {
			t.Errorf("run ended with %v after %v", err, time.Since(began))
		}
	})
}

func TestTheFenceIsTakenOnceATerm(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s"))
	p := mustNew(t, cfg)
	for _, lead := range []*fakeLead{leader(1), leader(1), leader(2), leader(2)} {
		if _, err := p.Run(t.Context(), lead); err != nil {
			t.Fatal(err)
		}
	}
	if db.takes.Load() != 2 || db.Fence("job") != (flush.Fence{Job: "job", Epoch: 2, Owner: "owner2", NodeID: "node"}) {
		t.Errorf("taken %d times, fence is %+v", db.takes.Load(), db.Fence("job"))
	}
	raised := leader(2)
	raised.epoch = 9 // another job of this term had to raise the epoch
	if _, err := p.Run(t.Context(), raised); err != nil || db.Fence("job").Epoch != 9 {
		t.Errorf("fence is %+v, %v", db.Fence("job"), err)
	}
}

func TestAnEpochThatRedisForgotIsRaised(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s", user("1", "a")))
	db.SetFence(flush.Fence{Job: "job", Epoch: 40, Owner: "before"})
	p := mustNew(t, cfg)
	lead := leader(3)
	for range 2 {
		if _, err := p.Run(t.Context(), lead); err != nil || db.Fence("job").Epoch != 41 || db.takes.Load() != 2 {
			t.Errorf("fence is %+v after %d tries, %v", db.Fence("job"), db.takes.Load(), err)
		}
	}
}

func TestANewTermWithALowerEpochTakesTheFenceToo(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s", user("1", "a")))
	p := mustNew(t, cfg)
	for _, lead := range []*fakeLead{leader(40), leader(3)} { // Redis lost its data in between
		if _, err := p.Run(t.Context(), lead); err != nil {
			t.Fatal(err)
		}
	}
	if db.Fence("job") != (flush.Fence{Job: "job", Epoch: 41, Owner: "owner3", NodeID: "node"}) {
		t.Errorf("fence is %+v", db.Fence("job"))
	}
}

func TestALockThatCannotBeRaisedMeansFenced(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s"))
	db.SetFence(flush.Fence{Job: "job", Epoch: 40, Owner: "newer"})
	lead := leader(3)
	gone := errors.New("the lock is gone")
	lead.raise = func(int64) (int64, error) { return 0, gone }
	_, err := mustNew(t, cfg).Run(t.Context(), lead)
	if !errors.Is(err, flush.ErrFenced) || !errors.Is(err, gone) || !strings.Contains(err.Error(), "epoch 40 (owner newer)") {
		t.Errorf("run ended with %v", err)
	}
}

func TestRaisingIsGivenUpAfterThreeTries(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s"))
	db.SetFence(flush.Fence{Job: "job", Epoch: 40, Owner: "newer"})
	lead := leader(3)
	lead.raise = func(floor int64) (int64, error) {
		f := db.Fence("job")
		f.Epoch += 10
		db.SetFence(f)
		return floor + 1, nil
	} // a race that the run can never win
	_, err := mustNew(t, cfg).Run(t.Context(), lead)
	if !errors.Is(err, flush.ErrFenced) || db.takes.Load() != 3 {
		t.Errorf("run ended with %v after %d tries", err, db.takes.Load())
	}
}

func TestFencedEndsTheRunAtOnce(t *testing.T) {
	first := flushtest.NewScript("first", user("1", "a"), user("2", "b"))
	second := flushtest.NewScript("second", user("3", "c"))
	cfg, db := users(first, second)
	applied := 0
	cfg.Sink = &sinkFunc{&fakeSink{base: db}, func(context.Context, flush.Fence, *row.Plan, flush.Batch) (flush.Outcome, error) {
		applied++
		return flush.Outcome{}, &flush.FencedError{Job: "job", Epoch: 9, Owner: "newer"}
	}}
	p := mustNew(t, cfg)
	_, err := p.Run(t.Context(), leader(1))
	if !errors.Is(err, flush.ErrFenced) || strings.Count(err.Error(), "epoch 9") != 1 || applied != 1 ||
		len(second.Calls()) > 1 || strings.Join(first.Calls(), " ") != "stage" {
		t.Errorf("%v after %d batches; calls were %v, %v", err, applied, first.Calls(), second.Calls())
	}
	if _, err = p.Run(t.Context(), leader(1)); db.takes.Load() != 2 {
		t.Errorf("after being fenced the fence must be claimed again, but it was taken %d times (%v)", db.takes.Load(), err)
	}
}

// Two installations with one lock key share a database, but not their Redis. Each of the two Redis servers confirms its own leader. A fence
// that the term itself has taken, for a stage of a renamed job, is no other leader's.
func TestTheLeaderOfAnotherElectionIsNamed(t *testing.T) {
	const named = "another leader writes to this database"
	lost := func(int64) (int64, error) { return 0, errors.New("the lock is gone") }
	for _, c := range []struct {
		owner string
		raise func(int64) (int64, error)
		names bool
	}{{"other", nil, true}, {"other", lost, false}, {leader(3).Owner(), nil, false}} {
		source := flushtest.NewScript("s", user("1", "a"))
		cfg, db := users(source)
		sink := &fakeSink{base: db}
		cfg.Sink = &sinkFunc{sink, func(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
			db.SetFence(flush.Fence{Job: "job", Epoch: 40, Owner: c.owner})
			return sink.Apply(ctx, f, p, b)
		}}
		lead := leader(3)
		lead.raise = c.raise
		_, err := mustNew(t, cfg).Run(t.Context(), lead)
		if !errors.Is(err, flush.ErrFenced) || strings.Contains(err.Error(), named) != c.names {
			t.Errorf("owner %s, Redis confirms the lock: %v; the run ended with %v", c.owner, c.raise == nil, err)
		}
	}
}

// A lasting error may mean that the database was replaced, and its fence with it. So the next run must take the fence again.
func TestTheFenceIsTakenAgainAfterAnErrorThatLasts(t *testing.T) {
	for fails, want := range map[error]int64{errors.New("there is no table baton_fence"): 2, flush.ErrTransient: 1} {
		cfg, db := users(flushtest.NewScript("s", user("1", "a")))
		failing := true
		sink := &fakeSink{base: db}
		cfg.Retry = flush.Retry{Attempts: 1}
		cfg.Sink = &sinkFunc{sink, func(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
			if failing {
				return flush.Outcome{}, fails
			}
			return sink.Apply(ctx, f, p, b)
		}}
		p := mustNew(t, cfg)
		if _, err := p.Run(t.Context(), leader(1)); !errors.Is(err, fails) {
			t.Errorf("%v, want %v", err, fails)
		}
		failing = false
		if _, err := p.Run(t.Context(), leader(1)); err != nil || db.takes.Load() != want {
			t.Errorf("after %v the fence was taken %d times, want %d (%v)", fails, db.takes.Load(), want, err)
		}
	}
}

// Other calls than Apply can also find that the fence is lost.
func TestTheFenceIsTakenAgainWhoeverFindsItLost(t *testing.T) {
	source := flushtest.NewScript("s", user("1", "a"))
	fenced := true
	source.On = on("discard", func() error {
		if fenced {
			return &flush.FencedError{Job: "job", Epoch: 9, Owner: "newer"}
		}
		return nil
	})
	cfg, db := users(source)
	p := mustNew(t, cfg)
	if _, err := p.Run(t.Context(), leader(1)); !errors.Is(err, flush.ErrFenced) {
		t.Fatalf("run ended with %v", err)
	}
	fenced = false
	if _, err := p.Run(t.Context(), leader(1)); err != nil || db.takes.Load() != 2 {
		t.Errorf("the fence was taken %d times, want 2 (%v)", db.takes.Load(), err)
	}
}

func TestABrokenShardDoesNotHoldUpTheOthers(t *testing.T) {
	for _, fail := range []string{"stage", "read", "done", "discard"} {
		first := hooked(failing(fail), flushtest.NewScript("first", user("1", "a")))
		second := flushtest.NewScript("second", user("2", "b"))
		cfg, db := users(first, second)
		_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "first") {
			t.Errorf("%s: run ended with %v", fail, err)
		}
		if db.Rows("users", "id")["2"] == "" {
			t.Errorf("%s: the second shard was not flushed", fail)
		}
	}
}

func TestADatabaseErrorEndsTheRun(t *testing.T) {
	first := flushtest.NewScript("first", user("1", "a"))
	second := flushtest.NewScript("second", user("2", "b"))
	cfg, db := users(first, second)
	applied := 0
	cfg.Sink = &sinkFunc{&fakeSink{base: db}, func(context.Context, flush.Fence, *row.Plan, flush.Batch) (flush.Outcome, error) {
		applied++
		return flush.Outcome{}, errors.New("permission denied")
	}}
	p := mustNew(t, cfg)
	if _, err := p.Run(t.Context(), leader(1)); err == nil || applied != 1 || len(second.Calls()) > 1 || len(first.Calls()) != 1 ||
		strings.Count(err.Error(), "permission denied") != 1 {
		t.Errorf("%v; calls were %v, %v", err, first.Calls(), second.Calls())
	}
	if _, err := p.Run(t.Context(), leader(1)); err == nil || db.reads.Load() != 2 {
		t.Errorf("after an error the catalogue must be read again, but was read %d times (%v)", db.reads.Load(), err)
	}
}

func TestAMendedTableNeedsNoRestart(t *testing.T) {
	cfg, db := users(flushtest.NewScript("s", user("1", "a")))
	table, _ := db.Table(t.Context(), "users")
	db.DropTable("users")
	p := mustNew(t, cfg)
	if _, err := p.Run(t.Context(), leader(1)); !errors.Is(err, flush.ErrNoTable) || !strings.Contains(err.Error(), `"users"`) {
		t.Errorf("run without the table ended with %v", err)
	}
	broken := table
	broken.Unique = nil
	db.SetTable(broken)
	if _, err := p.Run(t.Context(), leader(1)); err == nil || !strings.Contains(err.Error(), "no unique index") {
		t.Errorf("run without the index ended with %v", err)
	}
	db.SetTable(table)
	if _, err := p.Run(t.Context(), leader(1)); err != nil {
		t.Error(err)
	}
	if db.reads.Load() != 3 {
		t.Errorf("the catalogue was read %d times; a run reads it once", db.reads.Load())
	}
	if _, err := p.Run(t.Context(), leader(2)); err != nil || db.reads.Load() != 4 {
		t.Errorf("the catalogue was read %d times; a new term must look again (%v)", db.reads.Load(), err)
	}
}

// The next run that writes after a second reads the catalogue. Runs that follow each other at once need not read it each time.
func TestATableThatWasChangedIsSeenByTheNextRunThatWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := flushtest.NewScript("s", user("1", "a"))
		cfg, db := users(source)
		p := mustNew(t, cfg)
		run := func() error {
			_, err := p.Run(t.Context(), leader(1))
			return err
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		table, _ := db.Table(t.Context(), "users")
		reads := db.reads.Load()
		changed := table
		changed.Unique = nil
		db.SetTable(changed)
		if err := run(); err != nil || db.reads.Load() != reads {
			t.Errorf("a run at once read the catalogue again (%v)", err)
		}
		time.Sleep(flush.VerifyEvery)
		if err := run(); err == nil || !strings.Contains(err.Error(), "no unique index") {
			t.Errorf("run after the index was dropped ended with %v", err)
		}
		db.SetTable(table)
		if err := run(); err != nil {
			t.Error(err)
		}
		changed = table
		changed.Columns = append(slices.Clone(table.Columns), row.Column{Name: "note", Kind: row.KindText, Nullable: true, Generated: true})
		db.SetTable(changed)
		time.Sleep(flush.VerifyEvery)
		if err := run(); err != nil {
			t.Errorf("run with one more column ended with %v", err)
		}
		reads = db.reads.Load()
		source.SetPages()
		time.Sleep(flush.VerifyEvery)
		if err := run(); err != nil || db.reads.Load() != reads {
			t.Errorf("a run without work read the catalogue (%v)", err)
		}
	})
}

func TestAStageOfAnotherNameIsFinishedUnderThatNameAndItsFence(t *testing.T) {
	renamed := flushtest.NewScript("s", user("1", "a"))
	renamed.Job = "old"
	cfg, db := users(renamed)
	db.SetFence(flush.Fence{Job: "old", Epoch: 6, Owner: "deposed"})
	var batches []flush.Batch
	sink := &fakeSink{base: db}
	cfg.Sink = &sinkFunc{sink, func(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
		batches = append(batches, b)
		return sink.Apply(ctx, f, p, b)
	}}
	p := mustNew(t, cfg)
	if _, err := p.Run(t.Context(), leader(7)); err != nil {
		t.Fatal(err)
	}
	if got := db.Fence("old"); got.Epoch != 7 || got.Owner != "owner7" || len(batches) != 1 || batches[0].Job != "old" {
		t.Errorf("fence %+v, batches %+v", got, batches)
	}

	// Another election runs that job: two jobs flush the key.
	db.SetFence(flush.Fence{Job: "old", Epoch: 9, Owner: "other"})
	if _, err := p.Run(t.Context(), leader(8)); err == nil || errors.Is(err, flush.ErrFenced) ||
		!strings.Contains(err.Error(), "let only one job flush") || len(batches) != 1 {
		t.Errorf("run ended with %v", err)
	}
}

func TestAPanicWhileReadingIsAFailedRun(t *testing.T) {
	cfg, _ := users(hooked(on("page", func() error { panic("boom") }), flushtest.NewScript("s", user("1", "a"))))
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "reading s panicked: boom") || !strings.Contains(err.Error(), "pipeline_test.go") {
		t.Errorf("run ended with %v", err)
	}
}

func TestAPanicWhileRemovingIsAFailedRun(t *testing.T) {
	cfg, _ := users(hooked(on("done", func() error { panic("boom") }), flushtest.NewScript("s", user("1", "a"))))
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "removing from s panicked: boom") {
		t.Errorf("run ended with %v", err)
	}
}

func TestSumsNeedNumberedParts(t *testing.T) {
	w := newWorld("counters")
	cfg := w.config(nil)
	cfg.NewSources = func([]string) ([]flush.Source, error) {
		return []flush.Source{flushtest.NewScript("s", user("1", "2"))}, nil
	}
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "added twice") || w.db.Count("counts") != 0 {
		t.Errorf("run ended with %v, %d rows", err, w.db.Count("counts"))
	}
}

func TestBacklogNeedsNoDatabase(t *testing.T) {
	sources := []flush.Source{flushtest.NewScript("a", user("1", "a")),
		flushtest.NewScript("b", user("1", "a"), user("2", "b"))}
	if n, err := flush.Backlog(t.Context(), sources); n != 3 || err != nil {
		t.Errorf("backlog is %d, %v", n, err)
	}
	broken := hooked(failing("backlog"), flushtest.NewScript("a"))
	if _, err := flush.Backlog(t.Context(), []flush.Source{broken}); !errors.Is(err, errRefused) ||
		!strings.Contains(err.Error(), "backlog of a") {
		t.Errorf("error is %v", err)
	}
}

func TestASecondRunAtTheSameTimeIsRefused(t *testing.T) {
	cfg, _ := users(flushtest.NewScript("s"))
	var p *flush.Pipeline
	var second error
	cfg = observed(cfg, func(s string) error {
		if s == "taken-over" {
			_, second = p.Run(context.Background(), leader(1))
		}
		return nil
	})
	p = mustNew(t, cfg)
	if _, err := p.Run(t.Context(), leader(1)); err != nil || second == nil || !strings.Contains(second.Error(), "already running") {
		t.Errorf("first %v, second %v", err, second)
	}
}

func TestWhatCameWhileAnOldStageWasFinishedIsFlushedInTheSameRun(t *testing.T) {
	for _, kind := range []string{"counters", "hashes"} {
		w := newWorld(kind)
		for i := range 9 {
			w.produce(i)
		}
		cfg := w.config(nil)
		cfg = observed(cfg, func(s string) error {
			if s == "staged" {
				return errCrash
			}
			return nil
		})
		if _, err := mustNew(t, cfg).Run(t.Context(), w.elect()); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		for i := range 9 {
			w.produce(50 + i)
		}
		p := mustNew(t, w.config(nil))
		if _, err := p.Run(t.Context(), w.elect()); err != nil {
			t.Fatal(err)
		}
		if n, err := w.backlog(); n != 0 || err != nil {
			t.Errorf("%s: backlog is %d after one run, %v", kind, n, err)
		}
	}
}
