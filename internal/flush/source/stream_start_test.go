package source

import (
	"errors"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

// If the position's own entry is missing, the first entry that is read must be the one that was seen first. Otherwise a producer that trims
// just then would remove entries unnoticed.
func TestStreamTrimmedBeforeItsFirstEntryIsReadIsNoticed(t *testing.T) {
	for _, c := range []struct {
		what string
		read bool // up to 5, and then trimmed
		trim string
	}{{"nothing was read yet", false, "3"}, {"the position was trimmed", true, "8"}} {
		t.Run(c.what, func(t *testing.T) {
			g := newRig(t)
			src, db := g.stream(StreamOptions{}), newDatabase()
			g.fillStream(1, 5, nil)
			if c.read {
				db.drain(t, src)
				g.fillStream(6, 10, nil)
				g.Do("XTRIM", "events", "MINID", "6")
			}
			before := len(db.rows())
			once := false
			src.Store = watched(g.store, func(step string) error {
				if step == redistest.Before("XRANGE") && !once {
					once = true
					g.Do("XTRIM", "events", "MINID", c.trim)
				}
				return nil
			})
			_, err := db.flush(t.Context(), src, nil)
			if !errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), "2 entries after it were trimmed") {
				t.Errorf("flush: %v; want to be told that 2 entries are gone", err)
			}
			if len(db.rows()) != before {
				t.Errorf("%d rows were written beyond the gap", len(db.rows())-before)
			}
		})
	}
}
