package crash

import (
	"cmp"
	"context"
	"errors"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
)

// Released is the result of releasing an owner's lock.
type Released struct {
	LockKey string `json:"lock_key"`
	// Was says that the owner held the lock, which is free now.
	Was bool `json:"released"`
	// Holder is the node that held the lock instead of the owner. If the holder is a client that is not baton, Holder is the value of the
	// lock. It is "" if the lock is free.
	Holder string `json:"holder,omitzero"`
}

// Release releases the lock of a term that has ended without a release. It changes nothing if another owner holds the lock.
func Release(ctx context.Context, c config.Config, owner, reason string) (r Released, err error) {
	err = site.WithLock(ctx, c, func(ctx context.Context, e site.Election, lock site.NodeLock) error {
		r, err = giveUp(ctx, e, lock, owner, reason, "")
		return err
	})
	return r, err
}

// giveUp releases the lock if the owner holds it. Otherwise the result names the holder of the lock.
func giveUp(ctx context.Context, e site.Election, lock site.NodeLock, owner, reason string, code elector.Code) (Released, error) {
	p, unseen := e.State(ctx, 0)
	r := Released{Was: p.Owner == owner}
	if !r.Was {
		r.Holder = cmp.Or(p.Leader, p.Owner)
	}
	// Even if the state could not be read, the lock is released, because the release matters more than its report.
	return r, errors.Join(lock.Release(ctx, owner,
		elector.Handover{Event: string(elector.EventReleased), Reason: reason, Code: code}), unseen)
}
