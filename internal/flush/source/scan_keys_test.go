package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn"
)

// oldServer answers SCAN like a Redis before version 6, which does not have TYPE.
type oldServer struct {
	redisconn.Conn
	refused int
}

func (c *oldServer) Ask(ctx context.Context, q *redisconn.Question) error {
	asked := string(q.Write(nil, 0))
	if strings.Contains(asked, "\nSCAN\r") && strings.Contains(asked, "\nTYPE\r") {
		c.refused++
		return q.Read(&redisconn.Answers{Replies: []redisconn.Reply{{Refusal: "ERR syntax error"}}})
	}
	return c.Conn.Ask(ctx, q)
}

func TestKeysOfOtherTypesAreLeftOutWhereScanDoesNotTellThem(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "k:string", "x")
	g.Do("HSET", "k:hash", "v", "x")
	g.Do("SADD", "k:set", "x")
	g.Do("ZADD", "k:zset", 1, "x")
	g.Do("RPUSH", "k:list", "x")
	c, err := g.store.Conn(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, k := range []struct{ value, inputs, want string }{
		{"string", "id $value", "string"}, {"json", "id v", "string"}, {"hash", "id v", "hash"}, {"hash", "id", "hash"},
		{"set", "id $member", "set"}, {"zset", "id $score", "zset"}, {"zset", "id", "zset"},
	} {
		src := scanOn(t, g.store, ScanOptions{Key: "k:<id>", Value: k.value, Inputs: strings.Fields(k.inputs)})
		old := &oldServer{Conn: c}
		var got []string
		rows := newScanRows(src, 1, func(p flush.Page) error {
			for _, r := range p.Records {
				got = append(got, r.Inputs[0].Text)
			}
			return nil
		})
		keys := src.keys()
		pile := &idlist.List{}
		if err := keys.next(t.Context(), old, pile, 1<<20, 1<<20); err != nil {
			t.Fatal(err)
		}
		pile.Sort()
		for lane, ids := range pile.Pages(10, 1) {
			if len(ids) != 5 || old.refused != 1 {
				t.Errorf("%s: keys %q, TYPE refused %d times", k.value, ids, old.refused)
			}
			if err := rows.read(t.Context(), old, lane, ids); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.flush(); err != nil || !slices.Equal(got, []string{k.want}) {
			t.Errorf("%s, %s: rows %q, %v", k.value, k.inputs, got, err)
		}
	}
}

func TestAScanOfAReplicaSweepsNothing(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "session:1", "x")
	j := sessions(g.store)
	j.must(t)
	g.Do("DEL", "session:1")
	g.Do("REPLICAOF", "127.0.0.1", "1")
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(j.notes) != 1 || !strings.Contains(j.notes[0], "not a master") || len(j.table.texts()) != 1 {
		t.Errorf("notes %q, %d rows", j.notes, len(j.table.texts()))
	}
}

func TestErrorsOfAScanNameItsKeys(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "session:1", "x")
	j := sessions(g.store)
	j.must(t)
	for _, forbidden := range []string{"scan", "get", "info"} {
		g.Do("ACL", "SETUSER", "default", "-"+forbidden)
		err := j.run(t.Context())
		g.Do("ACL", "SETUSER", "default", "+"+forbidden)
		if err == nil || !strings.Contains(err.Error(), `"session:<id>" for job "scan"`) || !strings.Contains(err.Error(), "ACL SETUSER") {
			t.Errorf("%s forbidden: %v", forbidden, err)
		}
	}
	g.Do("DEL", "session:1")
	g.Do("ACL", "SETUSER", "default", "-type")
	if err := j.run(t.Context()); err == nil || len(j.table.texts()) != 1 {
		t.Errorf("type forbidden: %v, %d rows", err, len(j.table.texts()))
	}
}

// TestNoCommandOfAScanBlocksRedisForLong is like TestNoCommandBlocksRedisForLong, for a scan.
func TestNoCommandOfAScanBlocksRedisForLong(t *testing.T) {
	const keys, attempts = 20_000, 20
	g := newRig(t)
	for lo := 0; lo < keys; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			if err := g.Conn.Send("HSET", fmt.Sprintf("user:u%d", i), "name", "somebody", "n", i); err != nil {
				t.Fatal(err)
			}
			if err := g.Conn.Send("ZADD", "big:one", i, fmt.Sprintf("m%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		g.Do("")
	}
	for name, src := range map[string]flush.Source{
		"hashes":    scanOn(t, g.store, ScanOptions{Key: "user:<id>", Inputs: []string{"id", "name", "n"}}),
		"a big set": scanOn(t, g.store, ScanOptions{Key: "big:<id>", Value: "zset", Inputs: []string{"id", "$member", "$score"}}),
		"nothing":   scanOn(t, g.store, ScanOptions{Key: "none:<id>", Inputs: []string{"id"}}),
	} {
		var always map[string]string // the commands that were slow in every attempt so far
		for range attempts {
			slow := g.slowCommands(src, 0)
			for call := range always {
				if slow[call] == "" {
					delete(always, call)
				}
			}
			if always == nil {
				always = slow
			}
			if len(always) == 0 {
				break
			}
		}
		if len(always) > 0 {
			t.Errorf("%s: slower than %s at each of %d attempts: %q", name, slowFrom, attempts, always)
		}
	}
}
