package work

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/job"
	"baton/internal/testsupport/fakelock"
)

// The runs of commands and of flushes count as work of their term. So a run does not begin after the term's soft stop.
func TestARunOfATermDoesNotBeginAfterTheSoftStop(t *testing.T) {
	for name, configured := range map[string]config.Job{
		"a command": {Name: "report", Schedule: "@hourly", Command: config.Command{"/bin/true"}},
		"a flush":   {Name: "views", Schedule: "@hourly", Flush: config.Flush{From: config.From{Type: "counters", Key: "views"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timing := heartbeat.Timing{TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second,
					Margin: 350 * time.Millisecond, Drain: 2 * time.Second}
				lock := fakelock.NewStore(timing.TTL).Node("a", func(op string) fakelock.Fault { return fakelock.Fault{LoseRequest: op == "renew"} })
				began, ran := time.Now(), make(chan error, 1)
				e, err := elector.New(lock, func(_ context.Context, term *elector.Term) error {
					bound := Lock{Log: zap.NewNop()}.Begin(term).bind(Task{Task: tasks.Task{Config: configured}}, config.History{})
					<-term.Closed()
					over, cancel := context.WithCancel(t.Context())
					cancel()
					defer func() {
						if missing := recover(); missing != nil { // a run that begins needs the parts that this test does not set
							ran <- fmt.Errorf("the run began: %v", missing)
						}
					}()
					_, err := bound.job.Run(over, job.Run{Job: configured.Name})
					ran <- err
					return nil
				}, elector.Config{
					NodeID: "a", Timing: timing, PollInterval: time.Hour, NewOwner: func() (string, error) { return "a-1", nil }, Counts: true,
					Clock: func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) }, Die: func(why string) { t.Error(why) },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				if err := <-ran; !errors.Is(err, errNotStarted) {
					t.Errorf("the run returned %v, want %v", err, errNotStarted)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
