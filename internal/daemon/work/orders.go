package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/operate/direct"
	"baton/internal/redisledger"
	"baton/internal/text"

	"go.uber.org/zap"
)

// orders executes the orders that operators have given for a term's jobs.
type orders struct {
	log    *zap.Logger
	ledger *redisledger.Ledger
	runner *job.Runner
	always []string // jobs whose runs are ended only by a pause
	taken  *takenRequests
	// operations are the operations of the term.
	operations *operations
}

// takenRequests contains the requests for manual runs that this node handles at present. It is needed because a request stays in Redis
// until its run has started, and so is read several times.
type takenRequests struct {
	mu  sync.Mutex
	ids map[string]bool
}

// take records a request. It reports whether the request is new.
func (t *takenRequests) take(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids[id] {
		return false
	}
	t.ids[id] = true
	return true
}

// leave removes a request, because it was answered or must be handled again.
func (t *takenRequests) leave(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ids, id)
}

// take executes the orders that operators give for the jobs, until ctx ends. It reads the orders directly after a hint. It also reads them
// at regular intervals, because hints may be lost.
func (o orders) take(ctx context.Context, jobs []job.Job, hints <-chan elector.Hint, every time.Duration) {
	o.taken = &takenRequests{ids: map[string]bool{}}
	for _, j := range jobs {
		if schedule.IsAlways(j.Schedule) {
			o.always = append(o.always, j.Name)
		}
	}
	var starting sync.WaitGroup
	defer starting.Wait()
	defer o.operations.running.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		o.read(ctx, &starting)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-hints:
		}
	}
}

// read reads all orders and executes them. If an order fails, the next reading tries it again, because an order stays in Redis until it is
// answered.
func (o orders) read(ctx context.Context, starting *sync.WaitGroup) {
	given, err := o.ledger.Orders(ctx, o.always)
	if err != nil {
		o.log.Debug("cannot read the orders for the jobs", zap.Error(err))
		return
	}
	for name, reason := range given.Paused {
		_ = o.runner.Paused(ctx, name, reason) // on an error the term ends, or the job is gone
	}
	for _, c := range given.Cancels {
		o.cancel(ctx, c)
	}
	o.operations.take(ctx, given.Operations)
	for _, r := range given.Requests {
		if o.taken.take(r.ID) {
			starting.Go(func() { // start may have to wait for another run, but other orders must not wait
				defer o.taken.leave(r.ID)
				o.start(ctx, r)
			})
		}
	}
}

const (
	// manualGrace is how long a manual run waits for a run of the same job that is in progress. Without this wait, the manual run of a job
	// that is due every second would often be refused, because such a job is often running.
	manualGrace = time.Second
	// queuedFor is how long a request that waits in the runner is valid. The request is renewed after a third of this time.
	queuedFor = direct.AskFor
)

// start starts a manual run. If the run is not started, it answers the request with the reason.
func (o orders) start(ctx context.Context, r redisledger.Request) {
	log := o.log.With(zap.String("job", r.Job), zap.String("run_id", r.ID), zap.String("by", r.By))
	err := o.runNow(ctx, r)
	switch {
	case err == nil && r.Force:
		log.Info("run requested, beside other runs of the job")
	case err == nil:
		log.Info("run requested")
	case errors.Is(err, job.ErrNotLeader) || ctx.Err() != nil:
		return // the next leader reads the request, or this leader after a reload
	default:
		log.Info("run refused", zap.Error(err))
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		if _, err := o.ledger.Refuse(ctx, r, o.refusal(r.Job, err)); err != nil {
			log.Debug("cannot record that a run was refused", zap.Error(err))
		}
	}
}

// runNow makes the runner start a manual run. It keeps the request alive in Redis until the run has started.
func (o orders) runNow(ctx context.Context, r redisledger.Request) error {
	result := make(chan error, 1)
	go func() { // ends with ctx at the latest, and runNow waits for its result
		manual := job.Manual{Job: r.Job, ID: r.ID, By: r.By, Force: r.Force}
		err := o.runner.RunNow(ctx, manual)
		ends := !slices.Contains(o.always, r.Job)
		for until := time.Now().Add(manualGrace); ends && errors.Is(err, job.ErrRunning) && time.Now().Before(until); {
			_ = Rest(ctx, manualGrace/20)
			err = o.runner.RunNow(ctx, manual)
		}
		result <- err
	}()
	wait := time.NewTimer(2 * manualGrace)
	defer wait.Stop()
	for {
		select {
		case err := <-result:
			return err
		case <-wait.C:
		}
		attempt, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		_, err := o.ledger.Queue(attempt, r, queuedFor) // if the request was withdrawn, the claim fails
		cancel()
		if err != nil {
			o.log.Debug("cannot prolong the request for a run", zap.String("run_id", r.ID), zap.Error(err))
		}
		wait.Reset(queuedFor / 3)
	}
}

// refusal returns the text that tells the requester why a run was refused.
func (o orders) refusal(name string, err error) string {
	switch {
	case errors.Is(err, job.ErrUnknown):
		return unknownToLeader(name)
	case errors.Is(err, job.ErrRunning):
		return o.running(name).Error()
	}
	return err.Error()
}

func unknownToLeader(name string) string {
	return fmt.Sprintf("the leader has no job %q in its configuration: is its configuration older than yours? See baton status", name)
}

// cancel cancels the runs that the order names, and answers with the IDs of the cancelled runs.
func (o orders) cancel(ctx context.Context, c redisledger.Cancel) {
	log := o.log.With(zap.String("job", c.Job), zap.String("by", c.By))
	if c.Expired {
		_, _ = o.ledger.WithdrawCancel(ctx, c) // the requester has gone, so a cancellation that stays does no harm
		return
	}
	answer := redisledger.Cancelled{Retry: o.retrial(ctx, c)}
	done, err := o.runner.Cancel(ctx, c.Job, c.RunID, c.By)
	answer.Runs, answer.Retry = done.Runs, max(answer.Retry, done.Retry)
	switch {
	case errors.Is(err, job.ErrNotLeader) || ctx.Err() != nil:
		return // the next leader reads the order
	case errors.Is(err, job.ErrUnknown):
		answer.Error = unknownToLeader(c.Job)
	case err != nil:
		answer.Error = err.Error()
	}
	logCancelled(log, answer, err)
	if _, err := o.ledger.AnswerCancel(ctx, c, answer); err != nil {
		log.Debug("cannot report which runs were cancelled", zap.Error(err))
	}
}

// logCancelled logs the outcome of a cancellation.
func logCancelled(log *zap.Logger, did redisledger.Cancelled, err error) {
	switch {
	case err != nil:
		log.Info("cancellation refused", zap.Error(err))
	case len(did.Runs) > 0:
		log.Info("runs cancelled; they are ending", zap.Strings("run_ids", did.Runs))
	case did.Retry > 0:
		log.Info("retry cancelled", zap.Int("attempt", did.Retry))
	default:
		log.Info("nothing to cancel")
	}
}

// retrial returns the attempt number of the job's pending retry. It returns 0 if there is none, or if the order cancels only one run. If
// all runs of a job are cancelled, the runner also drops this retry.
func (o orders) retrial(ctx context.Context, c redisledger.Cancel) int {
	if c.RunID != "" {
		return 0
	}
	states, err := o.ledger.Jobs(ctx, []string{c.Job})
	if err != nil || states[0].Retry == nil {
		return 0
	}
	return states[0].Retry.Attempt
}

// running returns an error that names the job's run in progress, because no other run of the job can begin before that run ends.
func (o orders) running(name string) error {
	for _, a := range o.runner.Running() {
		if a.Job == name {
			return fmt.Errorf("job %q is already running: its run %s started %v ago", name, a.ID, text.Duration(time.Since(a.Started)))
		}
	}
	return fmt.Errorf("job %q is already running", name)
}
