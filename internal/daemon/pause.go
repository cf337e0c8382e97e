package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/redislock"
)

// Paused is what a pause came to.
type Paused struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Already is why it was paused before; "" if it was not.
	Already string `json:"already,omitzero"`
	Leader  string `json:"leader,omitzero"` // the node that had to stop
	// TookMS is the time from the order to when nobody led, in milliseconds.
	TookMS int64 `json:"took_ms"`
}

// Pause has nobody lead until Resume, neither under the lock of the nodes nor under those
// that jobs have of their own, and waits, at most wait, until nobody does; wait zero
// does not.
func (r *Remote) Pause(ctx context.Context, reason string, wait time.Duration) (Paused, error) {
	leader, err := r.picture(ctx)
	if err != nil {
		return Paused{}, err
	}
	asked := time.Now()
	views := r.views()
	befores, err := tellAll(ctx, views, func(ctx context.Context, e site.Election) (*redislock.Pause, error) { return e.Pause(ctx, reason) })
	if err != nil {
		return Paused{}, err
	}
	done := Paused{Reason: reason, Since: leader.Now, Leader: leader.Leader}
	if before := befores[0]; before != nil {
		done.Since, done.Already = before.At, before.Reason
	}
	for _, v := range views {
		err = r.emptied(ctx, v, asked.Add(wait), wait)
		if err != nil {
			break
		}
	}
	done.TookMS = time.Since(asked).Milliseconds()
	return done, err
}

// tellAll orders the same of every election, and says what each answered. What follows
// one that does not answer has not been told: the order can be given again.
func tellAll[T any](ctx context.Context, views []view, order func(context.Context, site.Election) (T, error)) ([]T, error) {
	answers := make([]T, 0, len(views))
	for _, v := range views {
		ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		answer, err := order(ask, v.election)
		cancel()
		switch {
		case err != nil && len(answers) == 0:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("lock %q and those after it were not told; give the order again: %w", v.lockKey, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// emptied waits until nobody leads under a lock that is paused.
func (r *Remote) emptied(ctx context.Context, v view, end time.Time, wait time.Duration) error {
	p, ended, err := until(ctx, v.election, end, func(p redislock.Picture) bool { return p.Owner == "" })
	switch {
	case err != nil || ended || wait <= 0:
		return err
	case p.Leader == "":
		return fmt.Errorf("paused, but lock %q is held by a client that is not baton (owner %s): it does not take orders", v.lockKey, p.Owner)
	case v.lockKey != r.config.Election.LockKey:
		return fmt.Errorf("paused, but %s still leads lock %q after %v: it may be finishing its jobs, or is cut off and stops before its lease ends; see baton status", p.Leader, v.lockKey, wait)
	}
	return fmt.Errorf("paused, but %s still leads after %v: it may be finishing its jobs, or is cut off and stops before its lease ends; see baton status", p.Leader, wait)
}

// Resumed is what the end of a pause came to.
type Resumed struct {
	// Was is why it was paused; "" if it was not.
	Was   string    `json:"was"`
	Since time.Time `json:"since,omitzero"`
	// Leader and Epoch are of the term that followed; "" and 0 if it was not waited for.
	Leader string `json:"leader"`
	Epoch  int64  `json:"epoch"`
	TookMS int64  `json:"took_ms"`
}

// Resume ends a pause, also that of the locks that jobs have of their own, and waits, at
// most wait, until somebody leads again; wait zero does not. ErrNoLeader if nobody does
// by then.
func (r *Remote) Resume(ctx context.Context, reason string, wait time.Duration) (Resumed, error) {
	asked := time.Now()
	pauses, err := tellAll(ctx, r.views(), func(ctx context.Context, e site.Election) (*redislock.Pause, error) { return e.Resume(ctx, reason) })
	if err != nil {
		return Resumed{}, err
	}
	was := cmp.Or(pauses...) // that of the nodes' lock, or else of another
	if was == nil {
		return Resumed{}, nil
	}
	done := Resumed{Was: was.Reason, Since: was.At}
	p, led, err := until(ctx, r.election, asked.Add(wait), func(p redislock.Picture) bool { return p.Leader != "" })
	if err != nil || wait <= 0 {
		return done, err
	}
	if !led && p.Owner != "" {
		return done, fmt.Errorf("resumed, but lock %q is held by a client that is not baton (owner %s): after %v %w: see baton explain", r.config.Election.LockKey, p.Owner, wait, ErrNoLeader)
	}
	if !led {
		return done, fmt.Errorf("resumed, but after %v %w: see baton status", wait, ErrNoLeader)
	}
	done.Leader, done.Epoch, done.TookMS = p.Leader, p.Epoch, time.Since(asked).Milliseconds()
	return done, nil
}

// glance is how often a command that waits looks.
const glance = 5 * time.Millisecond

// until looks at an election until it is as wanted, or the time is over: then it
// returns false and the last look. It looks once at least.
func until(ctx context.Context, e site.Election, end time.Time, wanted func(redislock.Picture) bool) (redislock.Picture, bool, error) {
	for {
		p, err := look(ctx, e)
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
