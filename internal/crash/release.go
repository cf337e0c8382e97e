package crash

import (
	"cmp"
	"context"
	"errors"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
)

// Released is the result of the release of an owner's lock.
type Released struct {
	LockKey string `json:"lock_key"`
	// Was says that the lock was that owner's, and is free now.
	Was bool `json:"released"`
	// Holder is the node that held it instead, or the owner of a client that is not
	// baton; "" if it is free.
	Holder string `json:"holder,omitzero"`
}

// Release gives up the lock of a term that ended without doing so itself. It
// changes nothing if another owner holds the lock.
func Release(ctx context.Context, c config.Config, owner, reason string) (r Released, err error) {
	err = site.WithLock(ctx, c, func(ctx context.Context, e site.Election, lock site.NodeLock) error {
		r, err = giveUp(ctx, e, lock, owner, reason, "")
		return err
	})
	return r, err
}

// giveUp reads who holds the lock and releases it for its owner.
func giveUp(ctx context.Context, e site.Election, lock site.NodeLock, owner, reason string, code elector.Code) (Released, error) {
	p, unseen := e.Picture(ctx, 0)
	r := Released{Was: p.Owner == owner}
	if !r.Was {
		r.Holder = cmp.Or(p.Leader, p.Owner)
	}
	// The release matters more than its report.
	return r, errors.Join(lock.Release(ctx, owner,
		elector.Handover{Event: string(elector.EventReleased), Reason: reason, Code: code}), unseen)
}
