package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/config"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/schedule"
	"baton/internal/status/metrics"
	"baton/internal/testsupport/fakelock"
)

// deafLedger does not record the end of a run, and ignores the time limit for the record.
type deafLedger struct {
	*jobtest.Ledger
	release chan struct{}
}

func (l deafLedger) Finish(context.Context, job.Record) error {
	<-l.release
	return jobtest.ErrUnreachable
}

// Work that goes on after the trust window ends the process. Recording how work has ended does not end the process, because it changes
// no data, and is given up in time.
func TestOnlyWorkThatCanChangeSomethingEndsTheProcess(t *testing.T) {
	for name, stubborn := range map[string]bool{"a record hangs": false, "a command goes on": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timing := heartbeat.Timing{TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second, Margin: 350 * time.Millisecond, Drain: 2 * time.Second}
				store := fakelock.NewStore(timing.TTL)
				var away atomic.Bool
				lock := store.Node("a", func(string) fakelock.Fault { return fakelock.Fault{LoseRequest: away.Load()} })
				release := make(chan struct{})
				slots, err := schedule.Parse("@every 5s", nil)
				if err != nil {
					t.Fatal(err)
				}
				report := func(ctx context.Context, _ job.Run) (job.Result, error) {
					if stubborn {
						<-release
					}
					<-ctx.Done()
					time.Sleep(timing.Drain - 10*time.Millisecond) // it needs all of its time
					return job.Result{}, ctx.Err()
				}
				c := &candidacy{}
				ledger := deafLedger{jobtest.NewLedger("a-1"), release}
				cfg := config.Default()
				runner := work.NewRunner(ledger, work.RunnerOptions{
					Drain: cfg.Election.Drain, Logger: zap.NewNop(), Metrics: metrics.New("test", nil), Notes: &alert.Notifications{},
					Clock: work.NewClock(zap.NewNop(), nil), Idle: c.untilHardStop,
				})
				var late time.Duration // the time between the hard stop of the term and its return
				var died atomic.Int32
				began, ended := time.Now(), make(chan struct{})
				e, err := elector.New(lock, func(ctx context.Context, term *elector.Term) error {
					c.runningTerm = &runningTerm{term: term}
					defer func() {
						late = -term.UntilHardStop()
						close(ended)
						<-release // there is no other term
					}()
					jobs := []job.Job{{Name: "report", Schedule: slots, Run: work.Counted(term, report)}}
					return runner.Run(ctx, job.Term{NodeID: "a", Owner: term.Owner(), Epoch: term.Epoch()}, job.Workload{Jobs: jobs})
				}, elector.Config{
					NodeID: "a", Timing: timing, PollInterval: time.Second, NewOwner: func() (string, error) { return "a-1", nil },
					Clock: func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) }, Die: func(string) { died.Add(1) }, Counts: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = e.Run(ctx) }()
				time.Sleep(6 * time.Second)
				away.Store(true)
				time.Sleep(2 * timing.TTL)
				synctest.Wait()
				if died := died.Load() > 0; died != stubborn {
					t.Errorf("the process died: %v, want %v", died, stubborn)
				}
				select {
				case <-ended:
					if stubborn {
						t.Error("the term returned beside its command")
					} else if late > 0 {
						t.Errorf("the term returned %v after its hard stop", late)
					}
				default:
					if !stubborn {
						t.Error("the term has not returned")
					}
				}
				close(release)
				cancel()
				time.Sleep(time.Minute)
			})
		})
	}
}
