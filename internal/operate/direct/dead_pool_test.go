package direct

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/operate"
	"baton/internal/testsupport"
)

func TestConnectionsForDeadLettersAreSharedAndClosedWhenNobodyAsks(t *testing.T) {
	db := testsupport.SQLite(t)
	c := config.Config{Databases: map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}}.WithDefaults()
	synctest.Test(t, func(t *testing.T) {
		p := &letterPool{log: zap.NewNop()}
		take := func(edition int) (*deadLetters, func()) {
			t.Helper()
			d, leave, err := p.take(c, edition)
			if err != nil {
				t.Fatal(err)
			}
			return d, leave
		}
		open := func(d *deadLetters) bool {
			_, err := d.keys(t.Context(), operate.LetterFilter{})
			return err == nil || !strings.Contains(err.Error(), "closed")
		}
		a, leaveA := take(0)
		b, leaveB := take(0)
		if a.dbs["main"] != b.dbs["main"] || a.stores[""] != b.stores[""] {
			t.Error("two who ask have connections of their own")
		}
		a.jobs["views"] = &replayer{}
		leaveA()
		leaveA()
		time.Sleep(2 * lettersIdle)
		if !open(b) {
			t.Error("closed although somebody asks")
		}
		leaveB()
		time.Sleep(lettersIdle / 2)
		again, leave := take(0)
		if again.dbs["main"] != a.dbs["main"] || len(again.jobs) != 0 {
			t.Error("opened anew although somebody has just asked, or knows tables as they were")
		}
		leave()
		time.Sleep(lettersIdle + time.Second)
		if open(a) {
			t.Error("open although nobody asks")
		}
		// After a reload, a caller that still uses the old configuration keeps its connections.
		old, leaveOld := take(0)
		now, leaveNow := take(1)
		late, leaveLate := take(0)
		if old.dbs["main"] == now.dbs["main"] || late.dbs["main"] == now.dbs["main"] || !open(old) || !open(late) {
			t.Error("the old configuration's connections are those of the new one, or cut off")
		}
		leaveOld()
		leaveLate()
		if open(old) || open(late) || !open(now) {
			t.Error("the old ones are still open, or the new ones are not")
		}
		p.close()
		if !open(now) {
			t.Error("cut off by the end")
		}
		leaveNow()
		end, leaveEnd := take(1)
		leaveEnd()
		if open(now) || open(end) {
			t.Error("open after the end")
		}
	})
}
