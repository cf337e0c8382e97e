package work

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
)

// quiet is a source without changes.
type quiet struct{ *flushtest.Script }

func (quiet) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// idleFlush returns a flush job that waits for work until the test ends.
func idleFlush(t *testing.T) (*flushJob, *flushtest.Script) {
	t.Helper()
	s := flushtest.NewScript("rows")
	always, err := schedule.Parse("@always", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	of := Task{Task: tasks.Task{Schedule: always}}
	of.pipeline, err = flush.New(flush.Config{
		Job: "rows", NodeID: "a", Mapping: mapping.Spec{Table: "rows", Key: []string{"id"}}, Inputs: row.Inputs{Names: []string{"id"}},
		Sink: flushtest.NewDatabase(row.Table{
			Name: "rows", Columns: []row.Column{{Name: "id", Kind: row.KindText}}, Unique: [][]string{{"id"}},
		}),
		NewID:      func() (string, error) { return "id", nil },
		NewSources: func([]string) ([]flush.Source, error) { return []flush.Source{quiet{s}}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &flushJob{Task: of}
	go func() {
		for t.Context().Err() == nil {
			began := time.Now()
			if _, err := of.pipeline.Run(t.Context(), leads{}); err != nil {
				t.Errorf("a run: %v", err)
				return
			}
			f.ran(began)
			_ = of.pipeline.Wait(t.Context())
		}
	}()
	synctest.Wait()
	return f, s
}

// leads is a running term.
type leads struct{}

func (leads) Owner() string                                       { return "owner" }
func (leads) Epoch() int64                                        { return 1 }
func (leads) Raise(_ context.Context, floor int64) (int64, error) { return floor + 1, nil }
func nothing(context.Context) error                               { return nil }

// A verification of an idle source need not wait for a change in the source.
func TestAVerificationBeginsARunOfAJobThatWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := idleFlush(t)
		time.Sleep(time.Hour)
		before, since := len(s.Calls()), time.Now()
		if ok, err := f.await(t.Context(), since, nothing); !ok || err != nil {
			t.Fatalf("no run for a verification: %v, %v", ok, err)
		}
		if runs, took := len(s.Calls())-before, time.Since(since); runs != 1 || took > time.Second {
			t.Errorf("%d runs, and it was known after %v; want one, at once", runs, took)
		}
		time.Sleep(time.Hour)
		if runs := len(s.Calls()) - before; runs != 1 {
			t.Errorf("%d runs follow when no verification awaits one", runs-1)
		}
	})
}

// If no change is known to be pending, this is no proof: a stream that is not followed has not delivered its changes yet.
func TestOnlyARunProvesThatEverythingWasFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := idleFlush(t)
		since := time.Now().Add(time.Millisecond)
		latest(&f.fresh, since.Add(time.Second))
		if f.hasFlushed(since) {
			t.Error("a count of what is pending stands for a run")
		}
		if f.ran(since); !f.hasFlushed(since) {
			t.Error("a run that began then has not flushed what was before")
		}
	})
}

// Otherwise a comparison without the permission to read would be retried for minutes, without a report.
func TestWhatTheRedisUserMayNotDoEndsAnOperation(t *testing.T) {
	refused := fmt.Errorf("scan: %w", redisconn.Explain(redis.Error("NOPERM this user has no permissions")))
	if err := decided(refused); !errors.As(err, new(finalError)) {
		t.Errorf("it goes on after %v", err)
	}
	for _, err := range []error{nil, redis.Error("LOADING"), errors.New("connection refused")} {
		if errors.As(decided(err), new(finalError)) {
			t.Errorf("it ends with %v, which passes", err)
		}
	}
}
