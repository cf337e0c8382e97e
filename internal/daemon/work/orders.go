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

// orders carries out the operators' orders to a term's jobs.
type orders struct {
	log    *zap.Logger
	ledger *redisledger.Ledger
	runner *job.Runner
	always []string // jobs whose runs only a pause ends
	taken  *takenRequests
	// operations are the ones of the term.
	operations *operations
}

// takenRequests are the requests for runs that are being handled: a request stays in Redis as long as its run waits.
type takenRequests struct {
	mu  sync.Mutex
	ids map[string]bool
}

// take reports whether a request is new.
func (t *takenRequests) take(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids[id] {
		return false
	}
	t.ids[id] = true
	return true
}

// leave notes that a request was answered, or must be taken again.
func (t *takenRequests) leave(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ids, id)
}

// take carries out the operators' orders to the jobs until ctx ends: at once after a hint, and at every interval, since hints may be
// lost.
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

// read reads all orders and carries them out. A failed order is tried at the next reading: orders stay in Redis until they are answered.
func (o orders) read(ctx context.Context, starting *sync.WaitGroup) {
	given, err := o.ledger.Orders(ctx, o.always)
	if err != nil {
		o.log.Debug("cannot read the orders for the jobs", zap.Error(err))
		return
	}
	for name, reason := range given.Paused {
		_ = o.runner.Paused(ctx, name, reason) // the term ends, or the job is gone
	}
	for _, c := range given.Cancels {
		o.cancel(ctx, c)
	}
	o.operations.take(ctx, given.Operations)
	for _, r := range given.Requests {
		if o.taken.take(r.ID) {
			starting.Go(func() { // it may have to wait for another run; other orders must not
				defer o.taken.leave(r.ID)
				o.start(ctx, r)
			})
		}
	}
}

const (
	// manualGrace is how long a manual run waits for a run that goes on: if a job is due every second and takes a moment, the operator
	// should not read that it is running already.
	manualGrace = time.Second
	// queuedFor is how long a request that waits in the runner is valid. It is renewed after a third of that.
	queuedFor = direct.AskFor
)

// start starts a manual run, or answers why not.
func (o orders) start(ctx context.Context, r redisledger.Request) {
	log := o.log.With(zap.String("job", r.Job), zap.String("run_id", r.ID), zap.String("by", r.By))
	err := o.runNow(ctx, r)
	switch {
	case err == nil && r.Force:
		log.Info("run requested, whatever else of its job runs")
	case err == nil:
		log.Info("run requested")
	case errors.Is(err, job.ErrNotLeader) || ctx.Err() != nil:
		return // the next leader sees it, or this one after a reload
	default:
		log.Info("run refused", zap.Error(err))
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		if _, err := o.ledger.Refuse(ctx, r, o.refusal(r.Job, err)); err != nil {
			log.Debug("cannot refuse a run", zap.Error(err))
		}
	}
}

// runNow makes the runner start a manual run, and keeps the request alive meanwhile.
func (o orders) runNow(ctx context.Context, r redisledger.Request) error {
	result := make(chan error, 1)
	go func() { // ends with ctx at the latest; runNow waits for it
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
			o.log.Debug("cannot keep a request alive", zap.String("run_id", r.ID), zap.Error(err))
		}
		wait.Reset(queuedFor / 3)
	}
}

// refusal is the answer to the requester.
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
	return fmt.Sprintf("the leader has no job %q in its configuration: is it older than yours? See baton status", name)
}

// cancel cancels runs, and answers with their IDs.
func (o orders) cancel(ctx context.Context, c redisledger.Cancel) {
	log := o.log.With(zap.String("job", c.Job), zap.String("by", c.By))
	if c.Expired {
		_, _ = o.ledger.WithdrawCancel(ctx, c) // the requester has gone; it may stay, too
		return
	}
	answer := redisledger.Cancelled{Retry: o.retrial(ctx, c)}
	done, err := o.runner.Cancel(ctx, c.Job, c.RunID, c.By)
	answer.Runs, answer.Retry = done.Runs, max(answer.Retry, done.Retry)
	switch {
	case errors.Is(err, job.ErrNotLeader) || ctx.Err() != nil:
		return // the next leader sees it
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
		log.Info("runs cancelled, ending", zap.Strings("run_ids", did.Runs))
	case did.Retry > 0:
		log.Info("retry cancelled", zap.Int("attempt", did.Retry))
	default:
		log.Info("nothing to cancel")
	}
}

// retrial is the pending retry of the job, if the order cancels all of the job: the runner drops it.
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

// running names the run that another one would have to wait for.
func (o orders) running(name string) error {
	for _, a := range o.runner.Running() {
		if a.Job == name {
			return fmt.Errorf("job %q is running already: run %s, for %v now", name, a.ID, text.Duration(time.Since(a.Started)))
		}
	}
	return fmt.Errorf("job %q is running already", name)
}
