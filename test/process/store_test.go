package process

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const storeJobs = `
  - name: views
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: "views:[0-3]"}
      to: {database: main, table: views, key: [id]}
      columns: {id: $field, n: $value}
  - name: sales
    schedule: "@always"
    flush:
      from: {store: shop, type: counters, key: "views:[0-3]"}
      to: {database: main, table: sales, key: [id]}
      columns: {id: $field, n: $value}
`

// The data is in another Redis than the lock. Leaders are killed in the middle of flushing it, and so is that Redis,
// which keeps what it confirms: each change is there once.
func TestDataOfAStoreIsThereOnceThoughLeadersAndTheStoreAreKilled(t *testing.T) {
	t.Parallel()
	lock, shop := testsupport.StartRedis(t), testsupport.StartRedis(t, testsupport.RedisAOF())
	db := testsupport.SQLite(t)
	for _, table := range []string{"views", "sales"} {
		db.Exec(t, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, n bigint NOT NULL)")
	}
	c := cluster.Start(t, cluster.Options{
		RedisURL: lock.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: storeJobs,
		TopYAML: fmt.Sprintf("stores: {shop: {url: %q}}\n", shop.URL()),
	})
	leader := c.AwaitLeader(time.Minute)
	views, sales := 0, 0
	write := func(changes int) {
		ours, theirs := lock.Client(t), shop.Client(t)
		for range changes {
			key, id, n := fmt.Sprint("views:", rand.IntN(4)), rand.IntN(50), 1+rand.IntN(9)
			ours.Send("HINCRBY", key, id, n)
			theirs.Send("HINCRBY", key, id, n)
			views, sales = views+n, sales+n
		}
		ours.Do("PING")
		theirs.Do("PING")
	}
	sum := func(table string) string {
		return fmt.Sprint(db.Rows(t, "SELECT COALESCE(SUM(n), 0) FROM "+table))
	}
	for range 2 {
		write(2000)
		leader.Kill()
		write(500)
		old := leader
		leader = c.AwaitOther(old, time.Minute)
		old.Start()
	}
	write(2000)
	shop.Kill()
	c.Await(time.Minute, "the state to say so", func() bool {
		return strings.Contains(c.Command("status", "-o", "json").Stdout, `"store_unavailable"`)
	})
	lock.Client(t).Do("HINCRBY", "views:0", 1, 7)
	views += 7
	c.Await(time.Minute, "the other job", func() bool { return sum("views") == fmt.Sprintf("[[%d]]", views) })
	shop.Restart()
	write(100)
	after := shop.Client(t)
	c.Await(time.Minute, "every change once", func() bool {
		left := after.Num("EXISTS", "views:0", "views:1", "views:2", "views:3", "{views:0}:baton:stage", "{views:1}:baton:stage",
			"{views:2}:baton:stage", "{views:3}:baton:stage")
		return left == 0 && sum("sales") == fmt.Sprintf("[[%d]]", sales) && sum("views") == fmt.Sprintf("[[%d]]", views)
	})
	// On a busy machine a lease may run out, but no leader gives up its lock because a store is away.
	for _, n := range c.Nodes {
		for _, end := range n.Lines("no longer leading") {
			if end.Text("event") != "expired" {
				t.Errorf("%s ended its term: %s, %s", n.ID, end.Text("event"), end.Text("error"))
			}
		}
	}
}
