package daemon

import (
	"context"
	"fmt"
	"time"

	"baton/internal/redisstore"
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

// Pause has nobody lead until Resume, and waits, at most wait, until nobody does;
// wait zero does not.
func (r *Remote) Pause(ctx context.Context, reason string, wait time.Duration) (Paused, error) {
	leader, err := r.picture(ctx)
	if err != nil {
		return Paused{}, err
	}
	asked := time.Now()
	ask, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	before, err := r.election.Pause(ask, reason)
	if err != nil {
		return Paused{}, err
	}
	done := Paused{Reason: reason, Since: leader.Now, Leader: leader.Leader}
	if before != nil {
		done.Since, done.Already = before.At, before.Reason
	}
	p, ended, err := r.await(ctx, asked.Add(wait), func(p redisstore.Picture) bool { return p.Owner == "" })
	done.TookMS = time.Since(asked).Milliseconds()
	switch {
	case err != nil || ended || wait <= 0:
		return done, err
	case p.Leader == "":
		return done, fmt.Errorf("paused, but lock %q is held by a client that is not baton (owner %s): it does not take orders", r.config.Election.LockKey, p.Owner)
	}
	return done, fmt.Errorf("paused, but %s still leads after %v: it may be finishing its jobs, or is cut off and stops before its lease ends; see baton status", p.Leader, wait)
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

// Resume ends a pause and waits, at most wait, until somebody leads again; wait
// zero does not. ErrNoLeader if nobody does by then.
func (r *Remote) Resume(ctx context.Context, reason string, wait time.Duration) (Resumed, error) {
	asked := time.Now()
	ask, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	was, err := r.election.Resume(ask, reason)
	if err != nil || was == nil {
		return Resumed{}, err
	}
	done := Resumed{Was: was.Reason, Since: was.At}
	p, led, err := r.await(ctx, asked.Add(wait), func(p redisstore.Picture) bool { return p.Owner != "" })
	if err != nil || wait <= 0 {
		return done, err
	}
	if !led {
		return done, fmt.Errorf("resumed, but after %v %w: see baton status", wait, ErrNoLeader)
	}
	done.Leader, done.Epoch, done.TookMS = p.Leader, p.Epoch, time.Since(asked).Milliseconds()
	return done, nil
}

// glance is how often a command that waits looks.
const glance = 5 * time.Millisecond

// await looks at the election until it is as wanted, or the time is over: then it
// returns false and the last look. It looks once at least.
func (r *Remote) await(ctx context.Context, until time.Time, wanted func(redisstore.Picture) bool) (redisstore.Picture, bool, error) {
	for {
		p, err := r.picture(ctx)
		if err != nil {
			return p, false, err
		}
		if wanted(p) {
			return p, true, nil
		}
		if !time.Now().Before(until) {
			return p, false, nil
		}
		select {
		case <-ctx.Done():
			return p, false, ctx.Err()
		case <-time.After(glance):
		}
	}
}
