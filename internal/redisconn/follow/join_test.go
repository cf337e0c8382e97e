package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestAStreamBeginsAtItsEndAndTakesNoData(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "before", 1)
	f := follow(t, master(t, g.redis.URL()))
	if f.Kind != Began || f.At.ReplID == "" || f.At.DB != AnyDB || f.Backlog < 1<<20 {
		t.Errorf("joined %+v", f.Joined)
	}
	g.Do("SET", "a", 1)
	g.Do("EVAL", "redis.call('SET', 'b', 2) redis.call('DEL', 'a')", 0)
	g.Do("SELECT", 3)
	g.Do("HSET", "h", "x", "y")
	got, at := f.await(t, "3 HSET h x y")
	want := []string{"0 SET a 1", "0 SET b 2", "0 DEL a", "3 HSET h x y"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if end := offsetOf(t, g.Client); at.Offset != end || at.DB != 3 {
		t.Errorf("reached %+v, the master is at %d", at, end)
	}
	if n := strings.Count(g.Str("INFO", "stats"), "sync_full:1"); n != 1 { // the request that made the backlog
		t.Errorf("the server has sent its data: %s", g.Str("INFO", "stats"))
	}
}

func offsetOf(t testing.TB, c testsupport.Client) int64 {
	t.Helper()
	var i info
	if err := i.add(c.Str("INFO", "replication")); err != nil {
		t.Fatal(err)
	}
	return i.offset
}

// Redis does not repeat SELECT for a client that continues from a position.
func TestAPositionIsContinuedFromWithItsDatabase(t *testing.T) {
	g := newRig(t)
	m := master(t, g.redis.URL())
	f := follow(t, m)
	g.Do("SELECT", 5)
	g.Do("SET", "a", 1)
	_, at := f.await(t, "5 SET a 1")
	_ = f.end()
	g.Do("SET", "a", 2)
	g.Do("MULTI")
	g.Do("SET", "a", 3)
	g.Do("SET", "b", 3)
	g.Do("EXEC")
	f = follow(t, m, at)
	if f.Kind != Continued || f.At != at {
		t.Errorf("joined %+v at %+v", f.Joined, at)
	}
	got, _ := f.await(t, "5 SET b 3")
	if want := []string{"5 SET a 2", "5 SET a 3", "5 SET b 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPositionThatIsGoneIsNotContinuedFrom(t *testing.T) {
	g := newRig(t, testsupport.RedisArgs("--repl-backlog-size", "16384"))
	m := master(t, g.redis.URL())
	f := follow(t, m)
	g.Do("SET", "a", 1)
	_, at := f.await(t, "0 SET a 1")
	_ = f.end()
	full := g.Str("INFO", "stats")
	for i := range 40 {
		g.Do("SET", "a", strings.Repeat("x", 1000+i))
	}
	other := at
	other.ReplID = strings.Repeat("0", 40)
	ahead := at
	ahead.Offset += 1 << 30
	for _, c := range []struct {
		from Position
		code LossCode
		why  string
	}{{at, LostBacklog, "raise repl-backlog-size"}, {other, LostHistory, "another history"}, {ahead, LostHistory, "after the end"}} {
		f = follow(t, m, c.from)
		if f.Kind != Began || f.Why.Code != c.code || !strings.Contains(f.Why.Words, c.why) || f.At.Offset != offsetOf(t, g.Client) {
			t.Errorf("joined %+v, want %q", f.Joined, c.why)
		}
		_ = f.end()
	}
	if field(full, "sync_full") != field(g.Str("INFO", "stats"), "sync_full") {
		t.Error("the server began to send its data")
	}
}

func field(info, name string) string {
	_, after, _ := strings.Cut(info, "\r\n"+name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

// Several followers share a stream, which begins at the lowest of their positions that the master still accepts.
func TestAStreamBeginsAtTheLeastOfItsPositions(t *testing.T) {
	g := newRig(t)
	m := master(t, g.redis.URL())
	f := follow(t, m)
	var all []Position
	for i := range 3 {
		g.Do("SET", "a", i)
		_, at := f.await(t, fmt.Sprintf("0 SET a %d", i))
		all = append(all, at)
	}
	_ = f.end()
	other := all[0]
	other.ReplID, other.Offset = strings.Repeat("0", 40), 1
	f = follow(t, m, other, all[2], all[1])
	var none Loss
	if f.Kind != Continued || f.At != all[1] || f.Why != none || f.Lost[0] == none || f.Lost[1] != none || f.Lost[2] != none {
		t.Errorf("joined %+v", f.Joined)
	}
	if got, _ := f.await(t, "0 SET a 2"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestAPromotedReplicaContinuesItsMastersHistory(t *testing.T) {
	g := newRig(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(g.redis))
	r := replica.Client(t)
	f := follow(t, master(t, g.redis.URL()))
	g.Do("SET", "a", 1)
	if n := g.Num("WAIT", 1, 60_000); n != 1 {
		t.Fatalf("WAIT answered %d", n)
	}
	_, at := f.await(t, "0 SET a 1")
	_ = f.end()
	m := master(t, replica.URL())
	_, _, err := Join(t.Context(), m, at)
	wants(t, err, ErrNotMaster, "slave; configure the address of its master")
	r.Do("REPLICAOF", "NO", "ONE")
	shared := offsetOf(t, r)
	r.Do("SET", "a", 2)
	f = follow(t, m, at)
	if f.Kind != Promoted || f.At.ReplID == at.ReplID || f.Shared != shared || f.At.Offset != at.Offset {
		t.Errorf("joined %+v, shared %d", f.Joined, shared)
	}
	got, _ := f.await(t, "0 SET a 2")
	t.Log(got)
	lost := Position{ReplID: at.ReplID, Offset: shared + 1}
	if f := follow(t, m, lost); f.Kind != Began || f.Why.Code != LostFailover {
		t.Errorf("joined %+v", f.Joined)
	}
}

func TestARestartedMasterIsContinuedFromOnlyIfItKnowsItsHistory(t *testing.T) {
	g := newRig(t)
	m := master(t, g.redis.URL())
	f := follow(t, m)
	g.Do("SET", "a", 1)
	_, at := f.await(t, "0 SET a 1")
	g.redis.Kill()
	if err := f.wait(); err == nil {
		t.Error("the stream went on")
	}
	g.redis.Restart()
	if f = follow(t, m, at); f.Kind != Began || f.Why.Code != LostHistory {
		t.Errorf("joined %+v", f.Joined)
	}
}

func TestWhoMayNotFollowLearnsWhatToDo(t *testing.T) {
	g := newRig(t)
	for rights, want := range map[string]string{
		"+replconf +info":        "+psync",
		"+psync +info":           "+replconf",
		"+psync +replconf +ping": "+info",
	} {
		g.Do("ACL", redis.Args{"SETUSER", "limited", "reset", "on", ">secret", "+client|setname"}.AddFlat(strings.Fields(rights))...)
		m := masterAs(t, g.redis, "limited", "secret")
		_, _, err := Join(t.Context(), m)
		wants(t, err, ErrRefused, want)
	}
	hidden := newRig(t, testsupport.RedisArgs("--rename-command", "PSYNC", ""))
	_, _, err := Join(t.Context(), master(t, hidden.redis.URL()))
	wants(t, err, ErrRefused, "type: scan")
}

func TestAJoinEndsWithItsContext(t *testing.T) {
	g := newRig(t)
	m := master(t, g.redis.URL())
	g.redis.Freeze()
	defer g.redis.Thaw()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, _, err := Join(ctx, m); err == nil {
		t.Error("joined a server that hangs")
	}
}

// If Redis does not accept a position at its own end, it sends all its data, and Join skips the data.
func TestAnRDBIsSkipped(t *testing.T) {
	for name, args := range map[string][]string{
		"without a size": {"--repl-diskless-sync", "yes"},
		"with its size":  {"--repl-diskless-sync", "no"},
		"after a delay":  {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, testsupport.RedisArgs(args...))
			for i := range 2000 {
				g.Do("SET", fmt.Sprintf("old:%d", i), strings.Repeat("x", i%500))
			}
			for _, filtered := range []bool{true, false} {
				m := master(t, g.redis.URL())
				h, err := shake(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				if !filtered {
					if h, err = whole(t, m); err != nil {
						t.Fatal(err)
					}
				}
				at, err := h.fullResync()
				h.release()
				if err != nil {
					t.Fatal(err)
				}
				f := begin(t, newStream(h.reader, at), Joined{Kind: Resynced, At: at})
				g.Do("SELECT", 2)
				g.Do("SET", "a", 1)
				got, reached := f.await(t, "2 SET a 1")
				if len(got) != 1 || reached.Offset != offsetOf(t, g.Client) {
					t.Errorf("got %q, reached %+v", got, reached)
				}
				_ = f.end()
			}
		})
	}
	g := newRig(t)
	s, joined, err := resync(t.Context(), master(t, g.redis.URL()), 1)
	if err != nil || joined.Kind != Resynced || joined.Why.Code != LostBacklog || joined.Lost[0] == (Loss{}) {
		t.Fatalf("%+v, %v", joined, err)
	}
	_ = s.Close()
}

// whole returns a handshake that asks for all data.
func whole(t testing.TB, m Master) (*handshake, error) {
	conn, err := m.Socket(t.Context())
	if err != nil {
		return nil, err
	}
	h := &handshake{reader: newReader(conn), wait: m.Wait, release: func() {}}
	_, err = h.do("REPLCONF", "capa", "eof", "capa", "psync2")
	return h, err
}
