package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"

	"go.uber.org/zap"
)

// leader is what a node does while it leads.
type leader struct {
	log       *zap.Logger
	runner    *job.Runner
	tasks     []task
	metrics   *status.Metrics
	ledger    *redisstore.Ledger
	databases databases
	election  election
	resign    *abdicator
	first     *firstLook
	look      time.Duration // how often to look for orders that no hint tells of
}

// lead does the work of one term: an elector.LeadFunc.
func (l *leader) lead(ctx context.Context, term *elector.Term) error {
	flushes := make([]*flushJob, len(l.tasks))
	jobs := make([]job.Job, len(l.tasks))
	for i, t := range l.tasks {
		flushes[i] = t.bind(term, l.metrics, l.ledger)
		jobs[i] = flushes[i].job()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { forgetGone(ctx, l.election) })
	wg.Go(func() { l.first.look(ctx) })
	wg.Go(func() { keepGauges(ctx, l.ledger, flushes) })
	wg.Go(func() { takeOrders(ctx, l.log.Named("job"), l.ledger, l.runner, jobs, l.look) })
	wg.Go(func() { pruneLedgers(ctx, l.log.Named("ledger"), l.databases) })
	wg.Go(func() {
		if abdication := l.resign.watch(ctx); abdication != nil {
			cancel(abdication)
		}
	})
	err := work(ctx, l.runner, term, jobs)
	cancel(err) // an abdication came first, or is none
	wg.Wait()
	if abdication := new(elector.Abdication); errors.As(context.Cause(ctx), &abdication) {
		return abdication
	}
	return err
}

// newRunner makes what starts the jobs. Its logger names the node itself.
func newRunner(c config.Config, ledger job.Ledger, logger *zap.Logger, metrics *status.Metrics) *job.Runner {
	return job.NewRunner(ledger, newID, job.Config{
		Logger:        logger.Named("job"),
		FinishTimeout: min(time.Second, c.Election.Drain/2), // shorter than the drain
		OnStart:       func(r job.Run) { metrics.JobStarted(r.Job, time.Since(r.Slot)) },
		OnFinish: func(r job.Record) {
			metrics.JobFinished(r.Job, string(r.Trigger), string(r.State), r.Finished, r.Finished.Sub(r.Started))
		},
		OnMissed: func(m job.Missed) { metrics.JobMissed(m.Job, string(m.Reason), m.Count) },
	})
}

// work runs the jobs of a term. Without jobs a node still leads: its lock may be
// all that its users want.
func work(ctx context.Context, runner *job.Runner, term *elector.Term, jobs []job.Job) error {
	if len(jobs) == 0 {
		<-ctx.Done()
		return nil
	}
	return runner.Run(ctx, job.Term{NodeID: term.NodeID(), Owner: term.Owner(), Epoch: term.Epoch()}, job.Workload{Jobs: jobs})
}

// forgetGone takes nodes off the list that have been gone for a day: hosts come
// and go, and nobody else clears up. What fails is done in the next term.
func forgetGone(ctx context.Context, election election) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p, err := election.Picture(ctx, 0); err == nil {
		_ = election.Forget(ctx, p.Nodes, p.Now.Add(-forgottenAfter))
	}
}
