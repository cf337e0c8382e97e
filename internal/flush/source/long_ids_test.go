package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

// Long ids are removed without a script, and only if the stage is still the same.
func TestLongIDsAreRemovedOnlyFromTheirStage(t *testing.T) {
	long := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 20_000)) }
	for _, index := range []string{"set", "zset"} {
		for befalls, c := range map[string]struct {
			befall  func(g *rig, stage, meta string)
			stale   bool
			left    int64
			scripts int
		}{
			"nothing":                {func(*rig, string, string) {}, false, 1, 0},
			"another leader's stage": {func(g *rig, _, meta string) { g.Do("HSET", meta, "id", "b") }, true, 4, 1},
			"its end":                {func(g *rig, stage, meta string) { g.Do("UNLINK", stage, meta) }, true, 0, 1},
			"a change of the meta":   {func(g *rig, _, meta string) { g.Do("HSET", meta, "job", "users2") }, false, 1, 1},
			"no right to MULTI":      {func(*rig, string, string) {}, false, 1, 1},
		} {
			t.Run(index+"/"+befalls, func(t *testing.T) {
				g := newRig(t)
				for i := range 4 {
					if index == "set" {
						g.Do("SADD", "changed:user", long(i))
					} else {
						g.Do("ZADD", "changed:user", i, long(i))
					}
				}
				src, card := g.hashes(IndexedOptions{}), map[string]string{"set": "SCARD", "zset": "ZCARD"}[index]
				if befalls == "no right to MULTI" {
					g.Do("ACL", "SETUSER", "default", "-multi")
				}
				st := stageNow(t, src, "a")
				scripts := 0
				src.Store = watched(g.store, func(step string) error {
					switch {
					case step == redistest.After("WATCH"): // the stage was checked, and the ids are not removed yet
						c.befall(g, src.StageKey(), src.MetaKey())
					case step == redistest.Before("stage_remove"):
						if scripts++; befalls == "no right to MULTI" && g.Num(card, src.StageKey()) != 4 {
							t.Error("ids were removed without a transaction")
						}
					}
					return nil
				})
				err := src.Remove(t.Context(), st, []string{long(0), long(1), long(3)})
				if errors.Is(err, flush.ErrStaleStage) != c.stale || !c.stale && err != nil {
					t.Error(err)
				}
				if left := g.Num(card, src.StageKey()); left != c.left {
					t.Errorf("%d are left, want %d", left, c.left)
				}
				if scripts != c.scripts {
					t.Errorf("%d scripts, want %d", scripts, c.scripts)
				}
			})
		}
	}
}
