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

// runningTerm is one term of a candidacy. The jobs of a term may be replaced while it lasts.
type runningTerm struct {
	*candidacy
	term    *elector.Term
	work    *work.Term
	changed chan struct{} // the workload has been replaced
}

// firstWork is how long a term is for its jobs and for orders: what else accompanies them would
// take the processor, and the pool's connections, from those that are due.
const firstWork = 250 * time.Millisecond

// longestBeginning is for how long a term that begins keeps others from it.
const longestBeginning = time.Second

// lead does the work of one term: an elector.LeadFunc.
func (c *candidacy) lead(ctx context.Context, term *elector.Term) error {
	if c.turns.Take(ctx, nil, term.Overdue) != nil { // and waits for its own renewal, if that is overdue
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
		if ctx.Err() == nil { // else an abdication came first
			r.endCommands(elected)
		}
		cancel(context.Cause(elected))
	})
	wg.Go(func() { follow(ctx) })
	wg.Go(work.After(ctx, firstWork, func() { forgetGone(ctx, c.election) }))
	wg.Go(work.After(ctx, firstWork, func() { c.firstCheck.Run(ctx) }))
	wg.Go(func() { r.accompany(ctx, func(a *elector.Abdication) { cancel(a) }) })
	wg.Go(func() {
		defer c.turns.Leave()
		ctx, cancel := context.WithTimeout(ctx, longestBeginning)
		defer cancel()
		_, _ = c.ledger.Now(ctx) // is answered when processor and redis have had time for this term
	})
	c.clock.Settled(ctx)
	err := c.runner.Run(ctx, c.termOf(term), jobs)
	cancel(err) // an abdication came first, or is none
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

// termOf is a term as jobs know it.
func (c *candidacy) termOf(t *elector.Term) job.Term {
	of := job.Term{NodeID: t.NodeID(), Owner: t.Owner(), Epoch: t.Epoch()}
	if free := t.FreeFor(); free > 0 {
		of.FreeSince = c.clock.Now().Add(-free)
	}
	return of
}

// endCommands waits for the commands to end if the lead is given up by order. Each command
// has its whole grace. Flushes go on meanwhile, so that a change that is unflushed at the
// handover has waited no longer than the drain. A term that is over does not wait.
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
	_ = r.runner.EndFirst(trusted, why) // no term, no commands; a lease that is gone ends all
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
		if work.Rest(ctx, soon) != nil { // the term has hardly begun, or is about to end
			break
		}
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// accompany runs the tasks beside the jobs of a term until ctx ends. It restarts them for
// each workload.
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
				abdicate(&elector.Abdication{Reason: "its configuration keeps it from leading since a reload"})
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

// rests waits until no run goes on, as a reload promises them. It reports false if ctx ends first.
func (r *runningTerm) rests(ctx context.Context) bool {
	for len(r.runner.Running()) > 0 {
		if work.Rest(ctx, idleCheck) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// forgetGone takes nodes off the list that have been gone for a day: hosts come
// and go, and only the leader removes them. What fails is done in the next term.
func forgetGone(ctx context.Context, election site.Election) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p, err := election.Picture(ctx, 0); err == nil {
		_ = election.Forget(ctx, p.Nodes, p.Now.Add(-redislock.ForgottenAfter))
	}
}
