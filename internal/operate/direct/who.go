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

// Held are the locks that a client holds, by their keys: those of the configuration, and those on
// the index of this Redis. A lock without a leader is one that this user of Redis may not read.
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
		pictures, unread, err := l.LockStores.Pictures(ctx, slices.Collect(maps.Keys(noted)))
		for key, p := range pictures {
			if leader := leaderOf(p); leader != nil || p.Forbidden {
				held = append(held, diagnose.Lock{Key: key, Leader: leader})
			}
		}
		slices.SortFunc(held, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
		return held, errors.Join(err, unread)
	})
}
