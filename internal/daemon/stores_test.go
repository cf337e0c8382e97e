package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/doctor"
	"baton/internal/testsupport"
)

// storesLab returns a node with a job that reads the Redis of the lock, and a job with the same key in another store.
func storesLab(t *testing.T, schedule string) (*jobLab, *testsupport.Redis) {
	t.Helper()
	l := newJobLab(t)
	shop := testsupport.StartRedis(t)
	l.config.Stores = map[string]config.Store{"shop": {URL: shop.URL()}}
	l.job("views", schedule)
	l.job("sales", schedule)
	l.config.Jobs[1].Flush.From.Store, l.config.Jobs[1].Flush.From.Key = "shop", "views"
	return l, shop
}

func (l *jobLab) store(name string) diagnose.Store {
	l.t.Helper()
	s, err := l.remote.to.Snapshot(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, one := range s.Stores {
		if one.Name == name {
			return one
		}
	}
	l.t.Fatalf("no store %q in %+v", name, s.Stores)
	return diagnose.Store{}
}

func TestAStoreThatIsAwayFailsItsOwnJobsAlone(t *testing.T) {
	for name, how := range map[string]struct{ begin, finish func(*testsupport.Redis) }{
		"killed":  {(*testsupport.Redis).Kill, (*testsupport.Redis).Restart},
		"hanging": {(*testsupport.Redis).Freeze, (*testsupport.Redis).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, shop := storesLab(t, "@every 1s")
			l.config.Election.TTL = 30 * time.Second // a lease that a busy machine keeps
			l.config.MaxConcurrentJobs = 1           // a run that hangs would take the place of the other run
			r := l.start()
			client := testsupport.Client{T: t, Conn: shop.Conn()}
			l.do("HSET", "views", "1", 10)
			client.Do("HSET", "views", "2", 20)
			l.awaitRows("[[1 10] [2 20]]")
			epoch := r.epoch()
			if up := r.metric(`baton_store_up{store="shop"}`); up != "1" {
				t.Errorf("the store is up: %s", up)
			}
			client.Do("HSET", "views", "2", 1)
			l.awaitRows("[[1 10] [2 21]]")

			how.begin(shop)
			await(t, "the metric", func() bool { return r.metric(`baton_store_up{store="shop"}`) == "0" })
			await(t, "a failure with its reason", func() bool {
				j := l.state("sales")
				return j.LastRun != nil && strings.HasPrefix(j.LastRun.Error, "store shop: ")
			})
			clock, missed := testsupport.StartStopwatch(t), r.metric(`baton_job_missed_total{job="views",reason="concurrency"}`)
			for i := range 5 { // the job runs every second, and no slot is left out
				l.do("HSET", "views", "1", 1)
				l.awaitRows(fmt.Sprintf("[[1 %d] [2 21]]", 11+i))
			}
			if now := r.metric(`baton_job_missed_total{job="views",reason="concurrency"}`); now != missed && clock.Still() < 500*time.Millisecond {
				t.Errorf("slots of the other job were left out: %s, then %s", missed, now)
			}
			if s := l.store("shop"); s.OK || s.Error == "" || s.Host == "" {
				t.Errorf("the state: %+v", s)
			}
			await(t, "the page to say so", func() bool { return strings.Contains(r.read("/"), "Store shop does not answer") })
			await(t, "the other job to succeed", func() bool {
				j := l.state("views")
				return j.ConsecutiveFailures == 0 && j.Backlog != nil
			})
			if j := l.state("sales"); j.Backlog != nil || j.ConsecutiveFailures == 0 {
				t.Errorf("the job: %+v", j)
			}
			// On a busy machine the Redis of the lock may have been lost for a moment, which is another line.
			await(t, "one line", func() bool {
				return r.logs.FilterMessage("redis unavailable, retrying").FilterField(zap.String("store", "shop")).Len() == 1
			})

			how.finish(shop)
			again := testsupport.Client{T: t, Conn: shop.Conn()}
			again.Do("HSET", "views", "2", 100)
			await(t, "the flush after it", func() bool {
				return strings.Contains(fmt.Sprint(l.db.Rows(t, "SELECT id, views FROM articles ORDER BY id")), "[2 121]")
			})
			await(t, "the metric again", func() bool { return r.metric(`baton_store_up{store="shop"}`) == "1" && l.store("shop").OK })
			if now := r.epoch(); now != epoch {
				t.Errorf("the election noticed: epoch %s, now %s", epoch, now)
			}
			r.endsWell()
		})
	}
}

func TestAReloadTakesStoresInAndLeavesThem(t *testing.T) {
	t.Parallel()
	l, shop := storesLab(t, "@every 200ms")
	l.config = l.config.WithDefaults()
	r := startReloading(t, l.config)
	r.leads()
	reload := func(c config.Config) error {
		c = c.WithDefaults()
		r.next.Store(&c)
		return reloadOver(t, r.socket)
	}
	client := testsupport.Client{T: t, Conn: shop.Conn()}
	client.Do("HSET", "views", "2", 20)
	l.awaitRows("[[2 20]]")
	other := testsupport.StartRedis(t)
	before := l.config

	c := l.config
	c.Stores = map[string]config.Store{"shop": {URL: other.URL()}}
	if err := reload(c); err == nil || !strings.Contains(err.Error(), "stores.shop: the store is another server now") {
		t.Errorf("another server under the old name: %v", err)
	}
	client.Do("HSET", "views", "2", 1)
	l.awaitRows("[[2 21]]")

	c.Stores = map[string]config.Store{"shop": before.Stores["shop"], "branch": {URL: other.URL()}}
	c.Jobs = append([]config.Job(nil), before.Jobs...)
	c.Jobs[1].Flush.From.Store = "branch"
	if err := reload(c); err != nil {
		t.Fatal(err)
	}
	client.Do("HSET", "views", "2", 1000) // no node flushes this record any more
	branch := testsupport.Client{T: t, Conn: other.Conn()}
	branch.Do("HSET", "views", "3", 30)
	l.awaitRows("[[2 21] [3 30]]")
	await(t, "the metrics", func() bool {
		return r.metric(`baton_store_up{store="branch"}`) == "1" && r.metric(`baton_store_up{store="shop"}`) == ""
	})

	c.Stores = map[string]config.Store{"branch": {URL: other.URL(), Username: "default", PasswordInline: "x"}}
	branch.Do("CONFIG", "SET", "requirepass", "x")
	if err := reload(c); err != nil {
		t.Fatal(err)
	}
	await(t, "the connections to the old store to be closed", func() bool {
		list := fmt.Sprint(client.Do("CLIENT", "LIST"))
		return !strings.Contains(list, "name=baton:")
	})
	branch.Do("HSET", "views", "3", 1)
	l.awaitRows("[[2 21] [3 31]]")
	r.endsWell()
}

func TestAStageInAStoreThatNoJobFlushesIsNamed(t *testing.T) {
	t.Parallel()
	l, shop := storesLab(t, "@every 200ms")
	l.config.Jobs[1].Flush.DeadLetters.PerBatch = 1
	r := l.start()
	client := testsupport.Client{T: t, Conn: shop.Conn()}
	client.Do("HSET", "views", "1", 10, "no number", 20, "none", 30) // too many records do not fit, so all of them stay staged
	await(t, "the pause", func() bool { return l.state("sales").Paused != nil })
	if left, err := l.remote.to.LeftStages(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("a stage that is flushed is called left: %+v, %v", left, err)
	}
	r.endsWell()

	l.config.Jobs[1].Flush.From.Key = "other"
	r = l.start()
	await(t, "a line of the log", func() bool {
		return r.logs.FilterMessageSnippet("changes are staged that no job flushes").Len() == 1
	})
	s, err := l.remote.to.Snapshot(t.Context())
	if err != nil || len(s.LeftStages) != 1 || s.LeftStages[0].Store != "shop" || s.LeftStages[0].Key != "views" || s.LeftStages[0].Records != 3 {
		t.Fatalf("the state: %+v, %v", s.LeftStages, err)
	}
	if page := r.read("/"); !strings.Contains(page, "3 changes of views in store shop no job flushes") {
		t.Error("the page does not say so")
	}
	elsewhere := s.LeftStages[0]
	elsewhere.Store = ""
	if err := l.remote.to.DropStage(t.Context(), elsewhere); err == nil || !strings.Contains(err.Error(), `job "views" flushes "views"`) {
		t.Errorf("dropping the same key of another Redis: %v", err)
	}
	found := fmt.Sprint(doctor.Examine(t.Context(), l.config, doctor.Options{}))
	if !strings.Contains(found, `3 beside "views" in store "shop", by job "sales"`) || !strings.Contains(found, "baton stage drop views --store shop") {
		t.Errorf("doctor: %s", found)
	}
	without := l.config
	without.Stores, without.Jobs = nil, without.Jobs[:1]
	found = fmt.Sprint(doctor.Examine(t.Context(), without, doctor.Options{}))
	if !strings.Contains(found, `changes may be staged beside "views" in store "shop", by job "sales"`) {
		t.Errorf("doctor without the store: %s", found)
	}
	if err := l.remote.to.DropStage(t.Context(), s.LeftStages[0]); err != nil {
		t.Error(err)
	}
	if n := client.Do("EXISTS", "{views}:baton:stage", "{views}:baton:meta"); n != int64(0) {
		t.Errorf("%v keys are left", n)
	}
	r.endsWell()
}

// A node that hangs does not stop the next node, and counts only once.
func TestAJobOfAStoreMovesWithTheLead(t *testing.T) {
	t.Parallel()
	l, shop := storesLab(t, "@every 200ms")
	first := l.start()
	client := testsupport.Client{T: t, Conn: shop.Conn()}
	second := l.config
	second.Node.ID = "second"
	other := start(t, second, nil)
	total := 0
	deadline := time.Now().Add(3 * time.Second)
	for i := 0; time.Now().Before(deadline); i++ {
		client.Do("HINCRBY", "views", fmt.Sprint(i%7), 1)
		total++
		if i == 200 {
			first.endsWell()
		}
	}
	await(t, "every count once", func() bool {
		return fmt.Sprint(l.db.Rows(t, "SELECT SUM(views) FROM articles")) == fmt.Sprintf("[[%d]]", total) && client.Do("EXISTS", "views", "{views}:baton:stage") == int64(0)
	})
	other.endsWell()
}
