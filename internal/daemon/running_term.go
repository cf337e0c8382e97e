package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"baton/internal/daemon/inventory"
	"baton/internal/daemon/site"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redislock"
)

// runningTerm is one term of a candidacy. A reload may replace the jobs of a running term.
type runningTerm struct {
	*candidacy
	term    *elector.Term
	work    *work.Term
	changed chan struct{} // receives a value when the workload has been replaced
}

// firstWork is the time at the beginning of a term that is reserved for the term's jobs and orders. The term's other work begins later,
// because it would use the processor and pool connections that the due jobs need.
const firstWork = 250 * time.Millisecond

// longestBeginning limits how long a term that begins delays the beginning of the node's other terms.
const longestBeginning = time.Second

// lead does the work of one term. It is an elector.LeadFunc.
func (c *candidacy) lead(ctx context.Context, term *elector.Term) error {
	if c.termLimiter.Acquire(ctx, nil, term.Overdue) != nil { // also waits for the term's own renewal, if that is overdue
		return nil
	}
	r := &runningTerm{candidacy: c, term: term, work: c.workLock().Begin(term), changed: make(chan struct{}, 1)}
	jobs := c.begin(r)
	defer c.ended()
	elected := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(elected))
	follow := c.notes.Begin(c.lockKey, term.Epoch(), c.ledger, c.election)
	var wg sync.WaitGroup
	ended := make(chan struct{})
	forget := context.AfterFunc(elected, func() {
		defer close(ended)
		if ctx.Err() == nil { // otherwise an abdication came first
			r.endCommands(elected)
		}
		cancel(context.Cause(elected))
	})
	wg.Go(func() { follow(ctx) })
	wg.Go(work.After(ctx, firstWork, func() { forgetGone(ctx, c.election) }))
	wg.Go(work.After(ctx, firstWork, func() { c.firstCheck.Run(ctx) }))
	wg.Go(func() { r.accompany(ctx, func(a *elector.Abdication) { cancel(a) }) })
	wg.Go(func() {
		defer c.termLimiter.Release()
		ctx, cancel := context.WithTimeout(ctx, longestBeginning)
		defer cancel()
		_, _ = c.ledger.Now(ctx) // the answer comes when the processor and Redis have had time for this term
	})
	c.clock.Settled(ctx)
	err := c.runner.Run(ctx, c.termOf(term), jobs)
	cancel(err) // without effect if an abdication has already cancelled ctx
	r.work.End()
	if !forget() {
		<-ended
	}
	wg.Wait()
	if abdication := new(elector.Abdication); errors.As(context.Cause(ctx), &abdication) {
		return abdication
	}
	return err
}

// termOf converts the elector's term to the form that package job uses.
func (c *candidacy) termOf(t *elector.Term) job.Term {
	of := job.Term{NodeID: t.NodeID(), Owner: t.Owner(), Epoch: t.Epoch()}
	if free := t.FreeFor(); free > 0 {
		of.FreeSince = c.clock.Now().Add(-free)
	}
	return of
}

// endCommands waits until the commands have ended, if this node gives up the lead because of a step-down or a shutdown. Each command gets
// its whole grace period. Flushes continue during this time, so that a change that is not flushed at the handover has waited no longer than
// the configured drain (`election.drain`). If the term is already over, endCommands does not wait.
func (r *runningTerm) endCommands(elected context.Context) {
	why := context.Cause(elected)
	if !errors.Is(why, elector.ErrSteppedDown) && !errors.Is(why, elector.ErrShuttingDown) {
		return
	}
	if waited := r.work.Commands(); len(waited) > 0 {
		r.waitsFor("the end of " + strings.Join(waited, ", "))
		defer r.waitsFor("")
	}
	trusted, stop := context.WithCancel(context.WithoutCancel(elected))
	defer stop()
	go func() {
		select {
		case <-r.term.Closed():
			stop()
		case <-trusted.Done():
		}
	}()
	_ = r.runner.EndFirst(trusted, why) // without a term there are no commands; if the lease is gone, all work ends
}

// update replaces the term's jobs.
func (r *runningTerm) update(ctx context.Context, w *inventory.Workload) {
	const soon = 10 * time.Millisecond
	jobs := r.work.Load(w.Load)
	for {
		err := r.runner.Update(ctx, jobs)
		if _, now := r.current(); err == nil || now != r || !errors.Is(err, job.ErrNotLeader) {
			break
		}
		if work.Rest(ctx, soon) != nil { // the term has just begun, or is about to end
			break
		}
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// accompany runs the work of a term beside the jobs, until ctx ends. It starts this work again for each new workload.
func (r *runningTerm) accompany(ctx context.Context, abdicate func(*elector.Abdication)) {
	for first := firstWork; ctx.Err() == nil; first = 0 {
		w, _ := r.current()
		during, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { r.work.Accompany(during, w.Load, first) })
		wg.Go(func() {
			if abdication := r.abdicator.Watch(during); abdication != nil {
				abdicate(abdication)
			}
		})
		wg.Go(func() {
			if !w.Config.Node.IsCandidate() && r.rests(during) {
				abdicate(&elector.Abdication{Reason: "since a reload its configuration does not let it lead"})
			}
		})
		select {
		case <-ctx.Done():
		case <-r.changed:
		}
		stop()
		wg.Wait()
	}
}

// rests waits until none of the term's runs is in progress, because a reload promises this to its callers. It returns false if ctx ends
// earlier.
func (r *runningTerm) rests(ctx context.Context) bool {
	for len(r.runner.Running()) > 0 {
		if work.Rest(ctx, idleCheck) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// forgetGone removes from the list of nodes each node that has been gone for a day. It is needed because hosts come and go, and only the
// leader removes entries. If the removal fails, the next term tries it again.
func forgetGone(ctx context.Context, election site.Election) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p, err := election.State(ctx, 0); err == nil {
		_ = election.Forget(ctx, p.Nodes, p.Now.Add(-redislock.ForgottenAfter))
	}
}
