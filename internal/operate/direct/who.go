package direct

import (
	"context"
	"errors"
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// Held are the locks that a client holds, by their keys: those of the configuration, and those that
// baton lock has noted.
func (s *Site) Held(ctx context.Context) ([]diagnose.Lock, error) {
	return asking(ctx, s, func(l look) ([]diagnose.Lock, error) {
		snapshot, err := l.snapshot(ctx, nil, l.views())
		if err != nil {
			return nil, err
		}
		held := operate.HeldIn(snapshot)
		known := l.Config.LockKeys()
		var failed, unread []error
		for _, store := range l.Venue.Stores { // of several each knows enough
			noted, err := redislock.NotedLocks(ctx, store)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			for _, key := range noted {
				if slices.Contains(known, key) {
					continue
				}
				known = append(known, key)
				p, err := picture(ctx, l.Venue.At(key).Election())
				switch {
				case err != nil && (ctx.Err() != nil || redisconn.Unavailable(err) != ""):
					return held, err
				case err != nil: // of one lock, such as a key of another type: the others are told all the same
					unread = append(unread, err)
					continue
				}
				if leader := leaderOf(p); leader != nil {
					held = append(held, diagnose.Lock{Key: key, Leader: leader})
				}
			}
		}
		slices.SortFunc(held, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
		if len(failed) < len(l.Venue.Stores) {
			failed = nil
		}
		return held, errors.Join(append(failed, unread...)...)
	})
}
