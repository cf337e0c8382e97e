package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/testsupport"
)

// boards returns a job that captures sorted sets "board:<shop>:<id>". Two of them have many members.
func boards(t *testing.T, db *testsupport.Database, onMissing string) *lab {
	db.Exec(t, "CREATE TABLE boards (shop varchar(20) NOT NULL, id bigint NOT NULL, member varchar(40) NOT NULL, score double precision, "+
		"PRIMARY KEY (shop, id, member))"+exact(db))
	to := mapping.Spec{Table: "boards", Key: []string{"id", "member", "shop"}, Columns: map[string]mapping.ColumnSpec{
		"shop": {}, "id": {}, "member": {From: "$member"}, "score": {From: "$score"},
	}}
	l := newLab(t, db, source.Options{Type: "capture", Key: "board:<shop>:<id>", Value: "zset", OnMissing: onMissing, MaxPct: 100}, to)
	for i := range 3000 {
		l.send("ZADD", "board:a:1", i, fmt.Sprint("m", i))
		l.send("ZADD", fmt.Sprintf("board:b:%d", i%200), i, fmt.Sprint("m", i))
	}
	l.do("")
	l.run()
	return l
}

// send sends a command. The next do receives its reply.
func (l *lab) send(command string, args ...any) {
	l.Helper()
	if err := l.redis.Send(command, args...); err != nil {
		l.Fatal(err)
	}
}

// exact returns the end of a CREATE TABLE whose texts are equal only if their bytes are equal.
func exact(db *testsupport.Database) string {
	if db.Driver == "mysql" {
		return " COLLATE utf8mb4_nopad_bin"
	}
	return ""
}

// rows counts the rows, and the rows with a score.
func (l *lab) rows(when string, all, scored int) {
	l.Helper()
	got, err := l.db.Query(l.Context(), "SELECT count(*), count(score) FROM boards")
	if err != nil {
		l.Fatal(err)
	}
	if want := fmt.Sprintf("[[%d %d]]", all, scored); fmt.Sprint(got) != want {
		l.Errorf("%s: %v rows and with a score, want %s", when, got, want)
	}
}

func TestCapturedMembersEverywhere(t *testing.T) {
	idle := verify.Options{Flushed: func(context.Context, time.Time) (bool, error) { return true, nil }}
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		l := boards(t, db, "")
		l.wants("at first", l.verify(verify.Options{}), 6000, 0, 0, 0, 0)
		for i := 0; i < 3000; i += 3 {
			l.send("ZREM", "board:a:1", fmt.Sprint("m", i))
			l.send("ZADD", "board:a:1", -i, fmt.Sprint("n", i))
		}
		l.do("DEL", "board:b:7", "board:b:8")
		l.do("RENAME", "board:b:9", "board:c:9")
		l.do("ZINCRBY", "board:c:9", "0.5", "m9")
		l.run()
		l.rows("changed", 5970, 5970)
		l.wants("changed", l.verify(idle), 5970, 0, 0, 0, 0)

		db.Exec(t, "DELETE FROM boards WHERE shop = 'a' AND member IN ('m1', 'm2') OR shop = 'b' AND id = 11")
		db.Exec(t, "UPDATE boards SET score = 7 WHERE shop = 'a' AND member = 'm4'")
		db.Exec(t, "INSERT INTO boards (shop, id, member, score) VALUES ('a', 1, 'x', 1), ('z', 1, 'x', 1)")
		planted := l.verify(idle)
		l.wants("planted", planted, 5970, 17, 1, 2, 0)
		for _, e := range planted.Examples {
			if e.Kind == verify.Different && (e.Key != "board:a:1" || e.Member != "m4") || e.Kind == verify.Extra && e.Member != "x" ||
				e.Member == "" {
				t.Errorf("an example does not tell its member: %+v", e)
			}
		}
		repair := idle
		repair.Repair = true
		l.wants("marked", l.verify(repair), 5970, 17, 1, 2, 0)
		l.run()
		l.wants("repaired", l.verify(idle), 5970, 0, 0, 0, 0)
		l.do("DEL", "board:a:1")
		l.run()
		l.rows("without the large one", 2970, 2970)
	})
}

// With on_missing: null the row of a removed member has only its key, and counts as missing.
func TestCapturedMembersThatAreSetToNull(t *testing.T) {
	idle := verify.Options{Flushed: func(context.Context, time.Time) (bool, error) { return true, nil }}
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		l := boards(t, db, "null")
		for i := range 1500 {
			l.send("ZREM", "board:a:1", fmt.Sprint("m", i))
		}
		l.do("DEL", "board:b:7")
		l.do("SET", "board:b:8", "no sorted set any more")
		l.do("SET", "board:b:no number", "never one")
		l.run()
		l.rows("changed", 6000, 4470)
		l.wants("changed", l.verify(idle), 4470, 0, 0, 0, 0)
		l.do("ZADD", "board:a:1", 1, "m3")
		l.run()
		l.rows("back", 6000, 4471)
		db.Exec(t, "INSERT INTO boards (shop, id, member, score) VALUES ('a', 1, 'x', 1), ('z', 1, 'x', 1)")
		repair := idle
		repair.Repair = true
		l.wants("planted", l.verify(repair), 4471, 0, 0, 2, 0)
		l.run()
		l.rows("repaired", 6002, 4471)
		l.wants("repaired", l.verify(idle), 4471, 0, 0, 0, 0)
		db.Exec(t, "INSERT INTO boards (shop, id, member, score) VALUES ('y', 1, 'x', 1)")
		l.anew()
		l.rows("after a pass", 6003, 4471)
	})
}

// anew makes the next run a pass, and runs it.
func (l *lab) anew() {
	l.Helper()
	if err := l.flush.Release(); err != nil {
		l.Fatal(err)
	}
	l.db.Exec(l, "DELETE FROM baton_position")
	l.run()
}

// If a hash is gone, its row is set to NULL once. A row that does not exist is not created.
func TestCapturedHashesThatAreSetToNull(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		db.Exec(t, "CREATE TABLE people (id varchar(40) PRIMARY KEY, name varchar(60), pass bigint)"+exact(db))
		to := mapping.Spec{Table: "people", Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{"id": {}, "name": {}}}
		l := newLab(t, db, source.Options{Type: "capture", Key: "user:<id>", Value: "hash", OnMissing: "null", MaxPct: 50}, to)
		for i := range 100 {
			l.do("HSET", fmt.Sprint("user:", i), "name", "x")
		}
		l.run()
		for i := range 80 {
			l.do("DEL", fmt.Sprint("user:", i))
		}
		l.do("HSET", "user:short", "name", "is gone at once")
		l.do("DEL", "user:short")
		l.do("RPUSH", "user:list", "never a hash")
		l.run()
		named := func(when, want string) {
			t.Helper()
			got, err := db.Query(t.Context(), "SELECT count(*), count(name) FROM people")
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: %v rows and with a name, want %s, %v", when, got, want, err)
			}
		}
		named("gone", "[[100 20]]")
		l.do("DEL", "user:90")
		l.anew() // rows that are NULL already do not count, so 1 of 20 is within max_pct
		named("after a pass", "[[100 19]]")
		l.wants("after a pass", l.verify(verify.Options{}), 19, 0, 0, 0, 0)
		db.Exec(t, "UPDATE people SET name = 'y'")
		if err := l.flush.Release(); err != nil {
			t.Fatal(err)
		}
		db.Exec(t, "DELETE FROM baton_position")
		_, err := l.flush.Run(t.Context(), term{})
		if err == nil || !strings.Contains(err.Error(), "81 of 100 rows") {
			t.Errorf("more rows without a key than max_pct: %v", err)
		}
		named("too many", "[[100 100]]")
	})
}
