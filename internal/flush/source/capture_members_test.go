package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/testsupport"
)

// newMembersJob captures the sets or sorted sets "s:<id>" into a table that has a row for each member.
func newMembersJob(t testing.TB, r *testsupport.Redis, value string) *captureJob {
	j := newCaptureJob(t, r)
	return j.ofMembers(value)
}

func (j *captureJob) ofMembers(value string) *captureJob {
	j.options.Value = value
	j.table = newScanTable("id m", "score")
	j.columns = map[string]mapping.ColumnSpec{"id": {}, "m": {From: "$member"}}
	if value == "zset" {
		j.columns["score"] = mapping.ColumnSpec{From: "$score"}
	}
	return j
}

// membersOfAll returns the rows of the sets or sorted sets "s:<id>".
func membersOfAll(t testing.TB, c testsupport.Client, value string) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := redis.Strings(c.Do("KEYS", "s:*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if c.Str("TYPE", key) != value {
			continue
		}
		id := strings.TrimPrefix(key, "s:")
		if value == "set" {
			members, err := redis.Strings(c.Do("SMEMBERS", key), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, member := range members {
				all[id+"|"+member] = "-"
			}
			continue
		}
		scores, err := redis.StringMap(c.Do("ZRANGE", key, 0, -1, "WITHSCORES"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for member, score := range scores {
			all[id+"|"+member] = score
		}
	}
	return all
}

// do sends commands that are separated by |. + stands for a blank.
func do(c testsupport.Client, commands string) {
	for command := range strings.SplitSeq(commands, "|") {
		words := strings.Split(command, " ")
		if words[0] == "AWAIT" { // waits until a key has expired
			for c.Num("EXISTS", words[1]) == 1 {
				continue
			}
			continue
		}
		var args []any
		for _, word := range words[1:] {
			args = append(args, strings.ReplaceAll(word, "+", " "))
		}
		c.Do(words[0], args...)
	}
}

// ofSets has every command that changes a set, and commands that make a set of another key.
var ofSets = []string{
	"SADD s:1 a b c d", "SREM s:1 a x", "SADD s:2 c d e", "SMOVE s:1 s:2 b", "SINTERSTORE s:3 s:1 s:2", "SUNIONSTORE s:4 s:1 s:2",
	"SDIFFSTORE s:3 s:2 s:1", "SINTERSTORE s:3 s:1 s:none", "SPOP s:4 2", "SPOP s:4 10", "RENAME s:1 s:5", "COPY s:2 s:6",
	"SADD s:6 only|COPY s:5 s:6 REPLACE", "RENAME s:6 s:2", "RENAME s:2 other|SADD s:2 new|RENAME other s:2", "EXPIRE s:5 -1",
	"SADD s:7 a b|PEXPIRE s:7 1|AWAIT s:7", "SADD s:8 x y|DEL s:8", "SADD s:8 x|UNLINK s:8", "SADD s:9 v|SET s:9 text",
	"SET s:9 text|GETDEL s:9", "DEL s:9|SADD s:9 back|RPUSH l c a b|SORT l ALPHA STORE s:9", "DEL s:9|SADD s:9 back", "MOVE s:2 3",
	"SELECT 3|SADD s:2 more|MOVE s:2 0|SELECT 0", "MULTI|SADD s:1 in|SREM s:1 in|SADD s:1 out|EXEC",
	"EVAL return+redis.call('SADD','s:8','by','lua') 0", "SADD s:1 007 7|SREM s:1 7", "SADD other:1 x", "SREM s:1 out 007",
	"DEL s:2 s:8 s:9",
}

// ofSortedSets has every command that changes a sorted set.
var ofSortedSets = []string{
	"ZADD s:1 1 a 2 b 3 c 4 d 5 e 6 f", "ZINCRBY s:1 1.5 a", "ZADD s:1 XX 9 b", "ZADD s:1 GT CH 1 b", "ZADD s:1 INCR 2 c", "ZREM s:1 c x",
	"ZPOPMIN s:1", "ZPOPMAX s:1", "ZADD s:2 1 a 2 b 3 c 4 d 5 e 6 f", "ZREMRANGEBYRANK s:2 0 0", "ZREMRANGEBYSCORE s:2 2 2",
	"ZRANGESTORE s:3 s:2 0 1", "ZUNIONSTORE s:4 2 s:2 s:3", "ZINTERSTORE s:5 2 s:2 s:3", "ZDIFFSTORE s:6 2 s:2 s:3", "ZMPOP 1 s:2 MAX",
	"BZPOPMIN s:2 1", "BZPOPMAX s:4 1", "BZMPOP 1 1 s:4 MIN", "ZADD s:7 0 a 0 b 0 c|ZREMRANGEBYLEX s:7 - (c",
	"ZADD s:7 inf i -inf j 1e30 k 0.1 l",
	"RENAME s:7 s:1", "COPY s:4 s:1 REPLACE",
	"GEOADD g 13.361389 38.115556 p 15.087269 37.502669 q|GEOSEARCHSTORE s:8 g FROMLONLAT 15 37 BYRADIUS 200 km",
	"GEOADD s:8 13.361389 38.115556 z", "SADD t a b|ZUNIONSTORE s:9 1 t", "ZRANGESTORE s:9 s:none 0 -1", "EXPIRE s:8 -1",
	"ZADD s:9 1 x|DEL s:9|SADD s:9 set",
	"DEL s:9|ZADD s:9 1 y", "ZREM s:9 y", "MULTI|ZADD s:9 1 x|ZADD s:9 2 x|EXEC", "DEL s:1 s:4 s:5",
}

func TestWhateverChangesASetReachesTheTable(t *testing.T) {
	for value, all := range map[string][]string{"set": ofSets, "zset": ofSortedSets} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			j := newMembersJob(t, g.redis, value)
			do(g.Client, map[string]string{"set": "SADD s:old there before", "zset": "ZADD s:old 1 there 2 before"}[value])
			j.mustEqual(g.Client)
			j.told()
			for _, commands := range all {
				do(g.Client, commands)
				j.must(g.Client)
				if got, want := fmt.Sprint(j.table.texts()), fmt.Sprint(j.want(g.Client)); got != want {
					t.Errorf("after %s: %s, want %s", commands, got, want)
				}
			}
			dump := g.Str("DUMP", "s:old")
			g.Do("RESTORE", "s:1", 0, dump, "REPLACE")
			g.Do("RESTORE", "s:new", 0, dump)
			j.mustEqual(g.Client)
			if notes := j.told(); notes != "" {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// A key has more members than fit into a page, a statement or a reply, next to many small keys.
func TestLargeAndManySets(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		t.Run(fmt.Sprint("lanes=", lanes), func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			j := newMembersJob(t, g.redis, "zset")
			j.options.Rows, j.options.Lanes = 700, lanes
			const members = 6000
			for i := range members {
				g.Send("ZADD", "s:large", i, fmt.Sprintf("m%d", i))
				g.Send("ZADD", fmt.Sprintf("s:%d", i%300), i, fmt.Sprintf("m%d", i))
			}
			g.Do("")
			j.mustEqual(g.Client)
			for i := 0; i < members; i += 3 {
				g.Send("ZREM", "s:large", fmt.Sprintf("m%d", i))
				g.Send("ZADD", "s:large", -i, fmt.Sprintf("n%d", i))
				g.Send("DEL", fmt.Sprintf("s:%d", i%300))
			}
			g.Do("")
			j.mustEqual(g.Client)
			g.Do("DEL", "s:large")
			j.mustEqual(g.Client)
			if n := g.Calls()["smembers"] + g.Calls()["zrange"]; n > int64(4*302) { // the calls of the test itself
				t.Errorf("%d times a whole set was read", n)
			}
		})
	}
}

// A set changes while its pages are read. The change is received again, and then the table is equal.
func TestASetThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	for _, step := range []string{"staged", "rows-found", "before SISMEMBER", "after SISMEMBER", "page-read", "applied"} {
		g := newRig(t)
		j := newMembersJob(t, g.redis, "set")
		for i := range 40 {
			g.Do("SADD", "s:1", i)
		}
		j.mustEqual(g.Client)
		other := g.redis.Client(t)
		j.watch(at(step, func() {
			for i := 0; i < 40; i += 2 {
				other.Do("SREM", "s:1", i)
				other.Do("SADD", "s:1", fmt.Sprint("new", i))
			}
			other.Do("SADD", "s:1", "gone") // the batch has removed this member
		}))
		g.Do("SREM", "s:1", "1", "3")
		g.Do("SADD", "s:1", "gone")
		g.Do("SREM", "s:1", "gone")
		j.must(g.Client)
		j.mustEqual(g.Client)
	}
}

func TestASetsRunThatEndsAnywhereLosesNothing(t *testing.T) {
	for name, dies := range map[string]bool{"the process dies": true, "the run fails": false} {
		for _, lanes := range []int{1, 2} {
			for _, pass := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, lanes=%d, pass=%v", name, lanes, pass), func(t *testing.T) {
					t.Parallel()
					endASetAnywhere(t, dies, lanes, pass)
				})
			}
		}
	}
}

func endASetAnywhere(t *testing.T, dies bool, lanes int, pass bool) {
	g := newRig(t, testsupport.RedisArgs("--rename-command", "APPEND", "hidden"))
	j := newMembersJob(t, g.redis, "zset")
	j.options.Rows, j.options.Lanes, j.options.MaxPct = 3, lanes, 100
	for i := range 20 {
		g.Do("ZADD", "s:1", i, fmt.Sprint("m", i))
	}
	j.mustEqual(g.Client)
	other := g.redis.Client(t) // of the observer, which other goroutines call
	for n, hit := 1, true; hit; n++ {
		if pass {
			g.Do("hidden", "other", "x") // the keys that this command changes are unknown
		}
		if dies {
			j.die()
			j.live()
		}
		passed := 0
		j.watch(func(string) error {
			if passed++; passed != n {
				return nil
			}
			if _, err := other.Conn.Do("ZADD", "s:meanwhile", n, n); err != nil {
				return err
			}
			return errDies
		})
		for i := range 6 {
			g.Do("ZREM", "s:1", fmt.Sprint("m", (n+i)%20))
			g.Do("ZADD", "s:1", n, fmt.Sprint("m", (n+i+7)%20))
		}
		if n%5 == 0 {
			g.Do("DEL", "s:meanwhile")
		}
		j.mark(g.Client)
		_ = j.until(j.marked)
		j.observing.Lock()
		hit, j.observe = passed >= n, nil
		j.observing.Unlock()
		if dies {
			j.die()
		}
		j.again(func() error { return j.run(t.Context()) })
		if j.mustEqual(g.Client); t.Failed() {
			t.Fatalf("after step %d", n)
		}
		if !hit && n < 20 {
			t.Errorf("%d steps", n)
		}
	}
}

// A deposed leader that continues after its successor has taken over must not delete a row of a set.
func TestADeposedLeaderDeletesNoMember(t *testing.T) {
	for _, step := range []string{"rows-found", "before-apply"} {
		g := newRig(t)
		j := newMembersJob(t, g.redis, "set")
		g.Do("SADD", "s:1", "a", "b")
		j.mustEqual(g.Client)
		second := newMembersJob(t, g.redis, "set")
		second.table, second.epoch = j.table, j.epoch
		j.watch(at(step, func() {
			g.Do("SADD", "s:1", "a")
			second.mustEqual(g.Client)
		}))
		g.Do("SREM", "s:1", "a")
		var err error
		for limit := time.Now().Add(time.Minute); err == nil && time.Now().Before(limit); {
			err = j.run(t.Context())
		}
		if !errors.Is(err, flush.ErrFenced) {
			t.Errorf("%s: run ended with %v", step, err)
		}
		second.mustEqual(g.Client)
	}
}

// Members that were removed right before FLUSHALL keep their rows until an operator decides.
func TestMembersOfADatabaseThatWasEmptiedStay(t *testing.T) {
	for _, step := range []string{"staged", "rows-found", "after SISMEMBER"} {
		g := newRig(t)
		j := newMembersJob(t, g.redis, "set")
		for i := range 20 {
			g.Do("SADD", "s:1", i)
		}
		j.mustEqual(g.Client)
		other := g.redis.Client(t)
		j.watch(at(step, func() { other.Do("FLUSHALL") }))
		g.Do("SADD", "s:1", "new")
		if err := j.until(func() bool { return false }); !errors.Is(err, flush.ErrEmptied) {
			t.Errorf("%s: the run ended with %v", step, err)
		}
		if n := j.table.Count("rows"); n < 20 {
			t.Errorf("%s: %d rows are left", step, n)
		}
	}
}

// With on_missing: ignore the row of a removed member stays, and the table is not searched.
func TestRowsOfMembersThatAreGoneStayIfTheyMay(t *testing.T) {
	g := newRig(t)
	j := newMembersJob(t, g.redis, "zset")
	j.options.OnMissing = "ignore"
	do(g.Client, "ZADD s:1 1 a 2 b")
	j.must(g.Client)
	j.watch(func(step string) error {
		if step == "rows-found" {
			t.Error("rows were searched for")
		}
		return nil
	})
	do(g.Client, "ZREM s:1 a|ZADD s:1 3 b|ZADD s:1 4 c")
	j.must(g.Client)
	texts := j.table.texts()
	if texts["1|a"] != "1" || texts["1|b"] != "3" || texts["1|c"] != "4" {
		t.Errorf("rows: %v", texts)
	}
}
