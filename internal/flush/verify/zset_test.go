package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/source/existing"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// leaderboard returns a job for one sorted set. Its members existed before the job.
func leaderboard(t *testing.T, db *testsupport.Database) *lab {
	db.Exec(t, "CREATE TABLE ranking (player varchar(40) PRIMARY KEY, score double precision)"+exact(db))
	to := mapping.Spec{Table: "ranking", Key: []string{"player"}, Columns: map[string]mapping.ColumnSpec{
		"player": {From: "$member"}, "score": {From: "$score"},
	}}
	l := newLab(t, db, source.Options{Type: "zset", Key: "board", Changed: "changed:board"}, to)
	for i := range 5000 {
		l.send("ZADD", "board", fmt.Sprint(i, ".5"), fmt.Sprint("m", i))
	}
	l.do("")
	return l
}

func (l *lab) backfill() int64 {
	l.Helper()
	keys, err := l.keys(nil)
	if err != nil {
		l.Fatal(err)
	}
	var state verify.State
	if err := verify.Backfill(l.Context(), keys, state, 0, func(s verify.State) error { state = s; return nil }); err != nil {
		l.Fatal(err)
	}
	return state.Result.Marked
}

func TestMembersOfASortedSetEverywhere(t *testing.T) {
	idle := verify.Options{Flushed: func(context.Context, time.Time) (bool, error) { return true, nil }}
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		l := leaderboard(t, db)
		l.wants("before", l.verify(idle), 5000, 5000, 0, 0, 0)
		if n := l.backfill(); n < 5000 {
			t.Errorf("%d members were marked", n)
		}
		l.run()
		l.wants("backfilled", l.verify(idle), 5000, 0, 0, 0, 0)

		db.Exec(t, "DELETE FROM ranking WHERE player IN ('m1', 'm2')")
		db.Exec(t, "UPDATE ranking SET score = 7 WHERE player = 'm4'")
		db.Exec(t, "INSERT INTO ranking (player, score) VALUES ('x', 1), ('y', 1)")
		l.wants("planted", l.verify(idle), 5000, 2, 1, 2, 0)
		part := idle
		part.Sample = 0.2
		if r := l.verify(part); r.Records < 500 || r.Records > 2000 {
			t.Errorf("a fifth is %d of 5000", r.Records)
		}
		repair := idle
		repair.Repair = true
		l.wants("marked", l.verify(repair), 5000, 2, 1, 2, 0)
		l.run()
		l.wants("repaired", l.verify(idle), 5000, 0, 0, 0, 0)

		l.do("ZINCRBY", "board", 1, "m7") // the index of changes does not list this member
		l.do("ZREM", "board", "m8")
		l.wants("unmarked", l.verify(repair), 4999, 0, 1, 1, 0)
		l.run()
		l.wants("found", l.verify(idle), 4999, 0, 0, 0, 0)
		l.do("DEL", "board")
		l.do("SET", "board", "text")
		c, err := verify.New(t.Context(), l.config, l.keys, idle)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), verify.State{}); err == nil || !strings.Contains(err.Error(), `"board" is not a sorted set`) {
			t.Errorf("of another type: %v", err)
		}
	})
}

// A comparison continues after the members that it has seen, on the server that returned the cursor. On another server it begins again.
func TestMembersAreAllSeenWhileTheirSlotMoves(t *testing.T) {
	cluster := testsupport.StartCluster(t)
	store, err := redisconn.Open(redisconn.Options{Cluster: cluster.Addresses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	const all = 6000
	command := []any{"board"}
	for i := range all {
		command = append(command, i, fmt.Sprint("m", i))
	}
	cluster.Owner("board").Client(t).Do("ZADD", command...)
	o := source.Options{Job: "j", Type: "zset", Key: "board", Changed: "changed{board}"}
	keys, err := existing.Open(store, o, []string{"$member", "$score"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, moves := range []bool{false, true} {
		found := map[string]bool{}
		steps := 0
		for place, limit := "", time.Now().Add(time.Minute); steps == 0 || place != ""; {
			some, err := keys.Keys(t.Context(), place)
			if err != nil {
				if !moves || time.Now().After(limit) {
					t.Fatal(err)
				}
				continue
			}
			for _, key := range some.Keys {
				found[key] = true
			}
			if place = some.Next; moves && steps == 1 {
				from := cluster.Owner("board")
				for _, k := range []string{"a", "b", "c", "d"} {
					if to := cluster.Owner(k); to != from {
						cluster.MoveSlot("board", to)
						break
					}
				}
				if cluster.Owner("board") == from {
					t.Fatal("the slot has not moved")
				}
				clear(found) // it begins again
			}
			steps++
		}
		if len(found) != all || steps < 2 {
			t.Errorf("moves=%v: %d members in %d steps", moves, len(found), steps)
		}
	}
}
