package flush_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// slowCatalogue is a sink that takes a while to read the catalogue.
type slowCatalogue struct {
	*fakeSink
	takes time.Duration
	reads atomic.Int32
}

func (s *slowCatalogue) Table(ctx context.Context, name string) (row.Table, error) {
	s.reads.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return row.Table{}, ctx.Err()
	}
	return s.fakeSink.Table(ctx, name)
}

// If runs follow each other quickly, none of them waits for the catalogue. Still the catalogue is as fresh as if each run had read it.
func TestTheCatalogueIsReadBesideRunsThatFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, db := users(flushtest.NewScript("s", user("1", "a")))
		sink := &slowCatalogue{fakeSink: &fakeSink{base: db}, takes: flush.VerifyEvery / 4}
		cfg.Sink = sink
		p := mustNew(t, cfg)
		run := func() (time.Duration, error) {
			began := time.Now()
			_, err := p.Run(t.Context(), leader(1))
			return time.Since(began), err
		}
		if _, err := run(); err != nil {
			t.Fatal(err)
		}
		sink.reads.Store(0)
		for range 100 {
			time.Sleep(flush.VerifyEvery / 10)
			if took, err := run(); took > 0 || err != nil {
				t.Fatalf("a run waits for %v: %v", took, err)
			}
		}
		if n := sink.reads.Load(); n < 10 || n > 20 {
			t.Errorf("the catalogue was read %d times in 10 times its age", n)
		}
		changed, _ := db.Table(t.Context(), "users")
		changed.Unique = nil
		db.SetTable(changed)
		var err error
		began := time.Now()
		for time.Since(began) < 10*flush.VerifyEvery && err == nil {
			time.Sleep(flush.VerifyEvery / 10)
			_, err = run()
		}
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "no unique index") || took > 2*flush.VerifyEvery {
			t.Errorf("%v after the index was dropped: %v", took, err)
		}
	})
}

// If a reading of the catalogue hangs, no run waits for it before it is due. Later a run waits at most as long as the database may take.
func TestACatalogueThatHangsIsReadAgainWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, db := users(flushtest.NewScript("s", user("1", "a")))
		sink := &slowCatalogue{fakeSink: &fakeSink{base: db}}
		cfg.Sink = sink
		p := mustNew(t, cfg)
		if _, err := p.Run(t.Context(), leader(1)); err != nil {
			t.Fatal(err)
		}
		sink.takes = time.Hour
		time.Sleep(flush.VerifyEvery / 2)
		if _, err := p.Run(t.Context(), leader(1)); err != nil { // begins to read ahead
			t.Fatal(err)
		}
		synctest.Wait()
		sink.takes = time.Millisecond
		time.Sleep(2 * flush.VerifyEvery)
		began := time.Now()
		if _, err := p.Run(t.Context(), leader(1)); err != nil || time.Since(began) != time.Millisecond {
			t.Errorf("a run after it took %v: %v", time.Since(began), err)
		}
	})
}
