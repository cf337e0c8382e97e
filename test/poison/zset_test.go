package poison_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/row"
	"baton/internal/testsupport"
)

// badMembers are the ways in which a member of a sorted set is bad: what it is made from its
// number, and the reason.
var badMembers = []struct {
	name, score string
	member      string
	reason      map[string]string
}{
	{"infinite", "inf", "m%d", says("score")},
	{"infinitely little", "-inf", "m%d", says("score")},
	{"a fraction", "0.5", "m%d", says("score")},
	{"out of range", "40000", "m%d", map[string]string{"": "score", "sqlite": "CHECK"}},
	{"beyond 64 bits", "1e300", "m%d", says("score")},
	{"check", "-1", "m%d", map[string]string{"": "grown", "sqlite": "CHECK"}},
	{"too long", "1", "eleven chars %d", map[string]string{"": "10", "sqlite": "CHECK"}},
	{"invalid UTF-8", "1", "m\xff%d", says("UTF-8")},
	{"NUL byte", "1", "m\x00%d", says("NUL")},
}

var memberTables = map[string]string{
	"postgres": "(member varchar(10) PRIMARY KEY, score smallint NOT NULL CONSTRAINT grown CHECK (score >= 0))",
	"mysql": "(member varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY, score smallint NOT NULL, " +
		"CONSTRAINT zset_grown CHECK (score >= 0))",
	"sqlite": "(member varchar(10) PRIMARY KEY CHECK (length(member) <= 10), score smallint NOT NULL CHECK (score BETWEEN 0 AND 32767))",
}

// poisonMembers is poison for members of a sorted set, of which one in a hundred is bad.
func poisonMembers(t *testing.T, r *testsupport.Redis, db *testsupport.Database) {
	db.Exec(t, "CREATE TABLE zset_rows "+memberTables[db.Driver])
	c := r.Conn()
	if _, err := c.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	good, bad := map[string]bool{}, map[string]int{}
	for i := range 2 * batchRows {
		member, score := fmt.Sprint("m", i), fmt.Sprint(i%100)
		if i%100 == 37 {
			way := i / 100 % len(badMembers)
			member, score = fmt.Sprintf(badMembers[way].member, i), badMembers[way].score
			bad[member] = way
		} else {
			good[member+"|"+score] = true
		}
		if err := c.Send("ZADD", "board", score, member); err != nil {
			t.Fatal(err)
		}
		if err := c.Send("SADD", "changed", member); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := redis.Values(c.Do("")); err != nil {
		t.Fatal(err)
	}
	spec{Driver: db.Driver, DSN: db.DSN, RedisURL: r.URL(), Source: "zset"}.dieAndFinish(t)

	rows := db.Rows(t, "SELECT member, score FROM zset_rows")
	for _, r := range rows {
		if !good[strings.Join(r, "|")] {
			t.Errorf("the row %q is no good one", r)
		}
	}
	if len(rows) != len(good) {
		t.Errorf("%d rows, want %d", len(rows), len(good))
	}
	letters := map[string]bool{}
	for _, l := range db.Rows(t, "SELECT record, error FROM baton_dead_letter WHERE job = 'zset'") {
		record, err := row.ParseRecordJSON(nil, l[0])
		way, is := bad[record.Key]
		if err != nil || !is || letters[record.Key] {
			t.Errorf("a dead letter of no bad member, or another one of it: %q, %v", l, err)
			continue
		}
		letters[record.Key] = true
		want, of := badMembers[way].reason[db.Driver]
		if !of {
			want = badMembers[way].reason[""]
		}
		if !strings.Contains(strings.ToLower(l[1]), strings.ToLower(want)) {
			t.Errorf("%s: the reason %q does not say %q", badMembers[way].name, l[1], want)
		}
	}
	if len(letters) != len(bad) || len(bad) < len(badMembers) {
		t.Errorf("%d dead letters, want %d", len(letters), len(bad))
	}
}
