package direct

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redislock"
	"baton/internal/text"
)

// pause prevents nodes from leading, under the nodes' lock and under the jobs' own locks, until somebody orders resume. It waits until no
// node leads, at most for the duration in the argument wait.
func pause(ctx context.Context, l session, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	leader, err := l.state(ctx)
	if err != nil {
		return operate.Outcome{}, err
	}
	asked := time.Now()
	views := l.views()
	befores, err := tellAll(ctx, views, func(ctx context.Context, e site.Election) (*redislock.Pause, error) {
		return e.Pause(ctx, o.Signature())
	})
	if err != nil {
		return operate.Outcome{}, err
	}
	out := operate.Outcome{Code: operate.CodeDone, Since: leader.Now, From: leader.Leader}
	if before := befores[0]; before != nil {
		out.Since, out.Was = before.At, &diagnose.Pause{Since: before.At, Reason: before.Reason}
	}
	for _, v := range views {
		err = l.emptied(ctx, v, asked.Add(wait), wait)
		if err != nil {
			break
		}
	}
	out.Took = text.Seconds(time.Since(asked))
	if err != nil {
		return out, err
	}
	out.Text = "paused: no node leads"
	if out.From != "" && wait <= 0 {
		out.Code, out.Text = operate.CodeAsked, "paused: "+out.From+" has the order to stop"
	} else if out.From != "" {
		out.Text = fmt.Sprintf("paused: no node leads, %d ms after the order; %s led before", out.Took.Milliseconds(), out.From)
	}
	return out, nil
}

// tellAll sends one order to every election, and returns their answers. If one election fails, the later elections do not get the order,
// but the caller can give the order again.
func tellAll[T any](ctx context.Context, views []View, order func(context.Context, site.Election) (T, error)) ([]T, error) {
	answers := make([]T, 0, len(views))
	for _, v := range views {
		ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		answer, err := order(ask, v.Election)
		cancel()
		switch {
		case err != nil && len(answers) == 0:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("lock %q and the locks after it were not reached; give the order again: %w", v.LockKey, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// emptied waits until no node leads under a paused lock.
func (l session) emptied(ctx context.Context, v View, end time.Time, wait time.Duration) error {
	p, ended, err := until(ctx, v.Election, end, func(p redislock.ElectionState) bool { return p.Owner == "" })
	switch {
	case err != nil || ended || wait <= 0:
		return err
	case p.Leader == "":
		return fmt.Errorf("paused, but %w", heldByForeign(v.LockKey, p.Owner))
	case v.LockKey != l.Config.Election.LockKey:
		return fmt.Errorf("paused, but %s still leads lock %q after %v: %s", p.Leader, v.LockKey, wait, whyStillLeads)
	}
	return fmt.Errorf("paused, but %s still leads after %v: %s", p.Leader, wait, whyStillLeads)
}

const whyStillLeads = "that node may be finishing its jobs, or is cut off and stops before its lease ends; see baton status"

// resume ends a pause, also under the jobs' own locks. It waits until a node leads again, at most for the duration in the argument wait. It
// returns ErrNoLeader if no node leads by then.
func resume(ctx context.Context, l session, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	asked := time.Now()
	pauses, err := tellAll(ctx, l.views(), func(ctx context.Context, e site.Election) (*redislock.Pause, error) {
		return e.Resume(ctx, o.Signature())
	})
	if err != nil {
		return operate.Outcome{}, err
	}
	was := cmp.Or(pauses...) // the pause of the nodes' lock, or else the pause of another lock
	if was == nil {
		return operate.Outcome{Code: operate.CodeNothing, Text: "it was not paused"}, nil
	}
	out := operate.Outcome{Code: operate.CodeAsked, Was: &diagnose.Pause{Since: was.At, Reason: was.Reason}, Text: "resumed"}
	p, led, err := until(ctx, l.election, asked.Add(wait), func(p redislock.ElectionState) bool { return p.Leader != "" })
	if err != nil || wait <= 0 {
		return out, err
	}
	if !led && p.Owner != "" {
		return out, fmt.Errorf("resumed, but lock %q is held by a client that is not baton (owner %s): after %v %w: see baton explain",
			l.Config.Election.LockKey, p.Owner, wait, operate.ErrNoLeader)
	}
	if !led {
		return out, fmt.Errorf("resumed, but after %v %w: see baton status", wait, operate.ErrNoLeader)
	}
	out.Code, out.NodeID, out.Epoch, out.Took = operate.CodeDone, p.Leader, p.Epoch, text.Seconds(time.Since(asked))
	out.Text = fmt.Sprintf("resumed: %s leads, epoch %d, %d ms after the order", out.NodeID, out.Epoch, out.Took.Milliseconds())
	return out, nil
}

// glance is the first interval between two reads of the election by a command that waits.
const glance = 5 * time.Millisecond

// The function until reads an election repeatedly until the function wanted returns true, or until the time in the argument end. In the
// second case it returns false and the last state. It reads at least once.
func until(
	ctx context.Context, e site.Election, end time.Time, wanted func(redislock.ElectionState) bool,
) (redislock.ElectionState, bool, error) {
	for {
		p, err := stateOf(ctx, e)
		if err != nil {
			return p, false, err
		}
		if wanted(p) {
			return p, true, nil
		}
		if !time.Now().Before(end) {
			return p, false, nil
		}
		select {
		case <-ctx.Done():
			return p, false, ctx.Err()
		case <-time.After(glance):
		}
	}
}

// rest waits for the duration d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
