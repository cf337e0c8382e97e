package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// clusterRig is a Cluster for one test, with a store that uses it.
type clusterRig struct {
	t       *testing.T
	cluster *testsupport.RedisCluster
	store   *redisconn.Store
}

func newClusterRig(t *testing.T) *clusterRig {
	t.Helper()
	c := testsupport.StartCluster(t)
	// With a long time-out no command is sent twice, nor given up on a busy machine.
	s := openAt(t, redisconn.Options{Cluster: c.Addresses(), ClientName: "baton-test", Timeout: time.Minute})
	return &clusterRig{t: t, cluster: c, store: s}
}

// do runs a command at the node of its first argument. The command must succeed.
func (g *clusterRig) do(name string, args ...any) any {
	c, err := g.store.Conn(g.t.Context(), fmt.Sprint(args[0]))
	if err != nil {
		g.t.Error(err)
		return nil
	}
	defer c.Close()
	reply, err := redis.DoContext(c, g.t.Context(), name, args...)
	if err != nil {
		g.t.Errorf("%s: %v", name, err)
	}
	return reply
}

// change writes a row and then its id, as producers do.
func (g *clusterRig) change(id, name string, n int) {
	g.do("HSET", "user:"+id, "name", name, "n", n)
	g.do("SADD", "changed:user", id)
}

// The stage of a job is in one slot, and its rows are in all of them.
func TestFlushesOfAClusterAreExact(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	t.Run("counters", func(t *testing.T) {
		db, want := newDatabase(), map[string]int64{}
		for round := range 3 {
			for i := range 150 {
				field := fmt.Sprintf("article:%d", i)
				g.do("HINCRBY", "views:3", field, i+round)
				want[field] += int64(i + round)
			}
			db.drain(t, countersOn(t, g.store, CountersOptions{PartRows: 50}))
		}
		same(t, "counts", want, db.counts())
	})
	t.Run("hashes", func(t *testing.T) {
		db, want := newDatabase(), map[string]string{}
		for i := range 400 {
			id := fmt.Sprint(i)
			g.change(id, "name"+id, i)
			want[id] = fmt.Sprintf("%d|name%d|%d", i, i, i)
		}
		src := hashesOn(t, g.store, IndexedOptions{PageRows: 150})
		db.drain(t, src)
		same(t, "rows", want, db.rows())

		g.do("UNLINK", "user:7")
		g.do("SADD", "changed:user", "7")
		g.do("UNLINK", "user:8")
		g.do("RPUSH", "user:8", "x")
		g.do("SADD", "changed:user", "8")
		db.drain(t, src)
		delete(want, "7")
		same(t, "rows after a deletion", want, db.rows())
		if len(db.dead()) != 1 || db.dead()["8"] == "" {
			t.Errorf("dead letters: %v", db.dead())
		}
		ids := newDatabase()
		g.change("9", "x", 1)
		ids.drain(t, hashesOn(t, g.store, IndexedOptions{Inputs: []string{"id"}}))
		same(t, "ids alone", map[string]string{"9": "9"}, ids.rows())
	})
}

// While slots move, a row may be on the old node, on the new node, or on neither, and a stage may be out of reach. No row may be lost, or
// be taken for deleted.
func TestFlushesOfAClusterAreExactWhileSlotsMove(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	const users = 40
	want := map[string]string{}
	var mu sync.Mutex
	change := func(i, n int) {
		id := fmt.Sprint(i)
		g.do("HSET", "user:"+id, "name", "x", "n", n)
		g.do("SADD", "changed:user", id)
		mu.Lock()
		defer mu.Unlock()
		want[id] = fmt.Sprintf("%d|x|%d", i, n)
	}
	for i := range users {
		change(i, 0)
	}
	g.do("UNLINK", "user:0")
	delete(want, "0")
	db := newDatabase()
	src := hashesOn(t, g.store, IndexedOptions{PageRows: 10})

	for round := range max(2, testsupport.Often(4)) {
		// The slot of one row stays half moved, with the row on the old node or on the new one. So does the slot of a deleted row. The
		// index itself moves in between.
		halfway := 1 + rand.IntN(users-1)
		moves := []*testsupport.SlotMove{g.begin(fmt.Sprintf("user:%d", halfway)), g.begin("user:0")}
		if round%2 == 1 {
			if err := moves[0].MoveKeys(fmt.Sprintf("user:%d", halfway)); err != nil {
				t.Fatal(err)
			}
		}
		var running sync.WaitGroup
		running.Go(func() {
			for n := range 100 {
				change(1+rand.IntN(users-1), 100*round+n)
			}
		})
		change(halfway, 1000+round)
		g.do("SADD", "changed:user", "0")
		for range 5 {
			db.drain(t, src)
		}
		running.Wait()
		db.drain(t, src)
		mu.Lock()
		same(t, fmt.Sprintf("rows in round %d, halfway with user:%d", round, halfway), want, db.rows())
		mu.Unlock()
		ids := newDatabase() // of a job that needs no field
		g.do("SADD", "changed:id", halfway, 0)
		ids.drain(t, hashesOn(t, g.store, IndexedOptions{Changed: "changed:id", Inputs: []string{"id"}}))
		same(t, "ids alone", map[string]string{fmt.Sprint(halfway): fmt.Sprint(halfway)}, ids.rows())
		for _, m := range moves {
			if err := m.Finish(); err != nil {
				t.Fatal(err)
			}
			g.cluster.AwaitAgreement()
		}
		g.do("SADD", "changed:user", "1")
		if err := g.moveAway("changed:user"); err != nil {
			t.Fatal(err)
		}
		db.drain(t, src)
	}
}

// If a stage moves to another node while it is scanned, the cursor has no meaning there. Then ids would be missed, and removed with the
// stage.
func TestNothingIsLostOfAStageThatMovesWhileItIsScanned(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	const n = 3000
	for range testsupport.Often(4) {
		db := newDatabase()
		ids := redis.Args{"changed:user"}
		for i := range n {
			ids = append(ids, i)
			db.putRow(strconv.Itoa(i))
		}
		g.do("SADD", ids...)
		moved := false
		src := hashesOn(t, watched(g.store, func(step string) error {
			if step == redistest.After("SSCAN") && !moved {
				moved = true
				return g.moveAway("changed:user")
			}
			return nil
		}), IndexedOptions{PageRows: 500, RemoveEvery: time.Hour})
		if _, err := db.flush(t.Context(), src, nil); err == nil {
			t.Error("the flush did not notice that its stage was moved")
		}
		db.drain(t, src)
		if len(db.rows()) > 0 {
			t.Errorf("%d of %d changes are lost", len(db.rows()), n)
		}
	}
}

func TestAScanOfAKeyThatMovesFails(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	fields := redis.Args{"views"}
	for i := range 3000 {
		fields = append(fields, i, 1)
	}
	g.do("HSET", fields...)
	c, err := g.store.Conn(t.Context(), "views")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	replies := 0
	_, err = c.ScanKey(t.Context(), "HSCAN", "views", "0", redisconn.NewScanPace(), func() bool {
		if replies++; replies == 2 {
			if err := g.moveAway("views"); err != nil {
				t.Error(err)
			}
		}
		return false
	}, func([]byte) {})
	if err == nil || !strings.Contains(err.Error(), "moved to another node") {
		t.Error(err)
	}
}

// begin starts to move a key's slot to the next master.
func (g *clusterRig) begin(key string) *testsupport.SlotMove {
	g.t.Helper()
	to, err := g.other(key)
	if err != nil {
		g.t.Fatal(err)
	}
	move, err := g.cluster.Daemon().BeginMove(key, to)
	if err != nil {
		g.t.Fatal(err)
	}
	return move
}

// moveAway moves a key's slot to the next master, and waits until all nodes know that.
func (g *clusterRig) moveAway(key string) error {
	to, err := g.other(key)
	if err != nil {
		return err
	}
	if err := g.cluster.Daemon().MoveSlot(key, to); err != nil {
		return err
	}
	return g.cluster.Daemon().AwaitAgreement()
}

// other returns a master that does not have the key.
func (g *clusterRig) other(key string) (*testsupport.RedisDaemon, error) {
	c := g.cluster.Daemon()
	owner, err := c.AwaitOwner(key, nil)
	if err != nil {
		return nil, err
	}
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		if r, err := c.AwaitOwner(k, nil); err != nil || r != owner {
			return r, err
		}
	}
	return nil, errors.New("one master has all slots")
}
