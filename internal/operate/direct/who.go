package direct

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// Held returns the held locks, by their keys: the locks of the configuration, and the locks in the index of this Redis. A lock in the
// result has no leader if this process' user of Redis has no right to read the lock.
func (s *Site) Held(ctx context.Context) ([]diagnose.Lock, error) {
	return asking(ctx, s, func(l session) ([]diagnose.Lock, error) {
		snapshot, err := l.snapshot(ctx, nil, l.views())
		if err != nil {
			return nil, err
		}
		held := operate.HeldIn(snapshot)
		noted, err := l.LockStores.Noted(ctx)
		if err != nil {
			return held, err
		}
		for _, key := range l.Config.LockKeys() {
			delete(noted, key)
		}
		states, unread, err := l.LockStores.States(ctx, slices.Collect(maps.Keys(noted)))
		for key, p := range states {
			if leader := leaderOf(p); leader != nil || p.Forbidden {
				held = append(held, diagnose.Lock{Key: key, Leader: leader})
			}
		}
		slices.SortFunc(held, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
		return held, errors.Join(err, unread)
	})
}
