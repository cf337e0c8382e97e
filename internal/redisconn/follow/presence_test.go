package follow

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// A client that waits for a replica must not count us as a replica.
func TestAWriterNeverWaitsForUsInVain(t *testing.T) {
	g := newRig(t)
	f := follow(t, master(t, g.redis.URL()))
	g.Do("SET", "a", 1)
	f.await(t, "0 SET a 1")
	if n := g.Num("WAIT", 1, 1500); n != 0 { // the limit is longer than the pause between two acknowledgements
		t.Fatalf("WAIT counts us: %d", n)
	}
	// The server has asked all replicas for an acknowledgement, and has sent nothing for a second.
	wants(t, f.wait(), ErrLeft, "")
}

// The server asks for acknowledgements as long as a client waits for them. While other clients write, we stay connected.
func TestAWaitingWriterDoesNotDriveUsOutOfABusyStream(t *testing.T) {
	g := newRig(t)
	f := follow(t, master(t, g.redis.URL()))
	waiting := g.redis.Client(t)
	waiting.Do("SET", "w", 1)
	for i := range 20 {
		waiting.Send("WAIT", 1, 100)
		if err := waiting.Conn.Flush(); err != nil {
			t.Fatal(err)
		}
		g.Do("SET", "a", i)
		f.await(t, fmt.Sprintf("0 SET a %d", i))
		if _, err := waiting.Conn.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.ctxErr(); err != nil {
		t.Error(err)
	}
}

func TestAFailoverByHandNeverChoosesUs(t *testing.T) {
	g := newRig(t)
	f := follow(t, master(t, g.redis.URL()))
	g.Do("SET", "a", 1)
	f.await(t, "0 SET a 1")
	failsOverToNobody(t, g)
}

// On a server without writes the offset is 0, and every replica has this offset.
func TestAFailoverOfAServerWithoutWritesNeverChoosesUs(t *testing.T) {
	g := newRig(t)
	s, joined, err := Join(t.Context(), master(t, g.redis.URL()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // needed only if the test fails
	// FAILOVER must also not choose us in the moment before Follow begins.
	text := g.Str("INFO", "replication")
	if !strings.Contains(text, "master_repl_offset:0\r") || !strings.Contains(text, "port=65536,state=online,offset=1,") {
		t.Fatalf("the server has an offset, or our acknowledgement has not come with PSYNC:\n%s", text)
	}
	failsOverToNobody(t, g)
	begin(t, s, joined)
	g.Do("SET", "a", 1)
	if n := g.Num("WAIT", 1, 100); n != 0 {
		t.Errorf("WAIT counts us: %d", n)
	}
}

// failsOverToNobody makes the server search for a replica that has all data, and give up.
func failsOverToNobody(t *testing.T, g *rig) {
	t.Helper()
	if _, err := g.Conn.Do("FAILOVER", "TIMEOUT", 1500); err != nil {
		t.Logf("FAILOVER: %v", err)
	}
	limit := time.Now().Add(time.Minute)
	for !strings.Contains(g.Str("INFO", "replication"), "master_failover_state:no-failover") {
		if time.Now().After(limit) {
			t.Fatal("the failover does not end")
		}
		time.Sleep(10 * time.Millisecond) // no event shows when this happens
	}
	if got := g.Str("INFO", "replication"); !strings.Contains(got, "role:master") {
		t.Errorf("it is no master any more:\n%s", got)
	}
}

func TestAStopOfTheServerIsHardlyDelayed(t *testing.T) {
	g := newRig(t)
	m := master(t, g.redis.URL())
	f := follow(t, m)
	g.Do("SET", "a", 1)
	f.await(t, "0 SET a 1")
	began := time.Now()
	if _, err := g.Conn.Do("SHUTDOWN", "SAVE"); err == nil {
		t.Fatal("SHUTDOWN was answered")
	}
	// Without our reaction the server would wait for 10 seconds.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s to stop", took)
	} else {
		t.Logf("it stopped after %s", took.Round(time.Millisecond))
	}
	wants(t, f.wait(), ErrLeft, "")
	_, at := f.all() // the backlog of a server that has loaded its data begins at this position
	g.redis.Restart()
	// The server has given its history another ID, as a promoted replica does.
	if f := follow(t, m, at); f.Kind != Promoted || f.Shared != at.Offset {
		t.Errorf("after a clean stop: joined %+v", f.Joined)
	}
}

// A server that is stopping and waits for its replicas is not joined, because it would also wait for us.
func TestAServerThatStopsIsNotJoined(t *testing.T) {
	g := newRig(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(g.redis))
	m := master(t, g.redis.URL())
	f := follow(t, m)
	replica.Freeze()
	defer replica.Thaw()
	g.Do("SET", "a", 1)
	_, at := f.await(t, "0 SET a 1")
	if err := g.Conn.Send("SHUTDOWN", "NOSAVE"); err != nil {
		t.Fatal(err)
	}
	if err := g.Conn.Flush(); err != nil {
		t.Fatal(err)
	}
	wants(t, f.wait(), ErrLeft, "")
	_, _, err := Join(t.Context(), m, at)
	wants(t, err, ErrStopping, "")
}

func TestASentinelNeverListsUs(t *testing.T) {
	t.Parallel()
	all := testsupport.StartSentinel(t)
	first := all.Master()
	f := follow(t, master(t, first.URL()))
	c := first.Client(t)
	c.Do("SELECT", 1)
	c.Do("SET", "a", 1)
	f.await(t, "1 SET a 1")
	if text := c.Str("INFO", "replication"); !strings.Contains(text, "connected_slaves:3") || !strings.Contains(text, "port=65536") {
		t.Fatalf("we do not follow, or have a port:\n%s", text)
	}
	joined := time.Now()
	for _, s := range all.Sentinels() {
		c := s.Client(t)
		for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // the server's replies show when it last asked
			asked, err := redis.StringMap(c.Do("SENTINEL", "MASTER", all.Name()), nil)
			if err != nil {
				t.Fatal(err)
			}
			ago, err := strconv.Atoi(asked["info-refresh"])
			if err == nil && time.Duration(ago)*time.Millisecond < time.Since(joined) {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("it does not ask: %v", asked)
			}
		}
		if replicas, err := redis.Values(c.Do("SENTINEL", "REPLICAS", all.Name()), nil); err != nil || len(replicas) != 2 {
			t.Errorf("%d replicas, %v", len(replicas), err)
		}
	}
	first.Kill()
	second := all.AwaitMaster(first)
	if _, port, err := net.SplitHostPort(second.Addr()); err != nil || port == "65536" {
		t.Errorf("the new master is %s", second.Addr())
	}
}

// ctxErr returns the reason why the stream has ended, or nil if it has not ended.
func (f *followed) ctxErr() error {
	select {
	case <-f.done:
		return errors.Join(f.wait(), errors.New("the stream has ended"))
	default:
		return nil
	}
}
