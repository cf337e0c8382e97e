package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/daemon/adminsocket"
	"baton/internal/diagnose"
	"baton/internal/doctor"
	"baton/internal/elector"
	"baton/internal/flush/source/spec"
	"baton/internal/operate"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// reloading is a daemon with a configuration that the test changes.
type reloading struct {
	*running
	t      *testing.T
	config config.Config
	next   atomic.Pointer[config.Config]
	broken atomic.Bool
	socket string
	marks  string // the file to which the jobs' commands write
}

func startReloading(t *testing.T, c config.Config) *reloading {
	t.Helper()
	dir := t.TempDir()
	r := &reloading{t: t, socket: filepath.Join(dir, adminsocket.Name), marks: filepath.Join(dir, "marks")}
	c = c.WithDefaults()
	r.config = c
	r.next.Store(&c)
	r.running = startWith(t, c, map[string]string{"RUNTIME_DIRECTORY": dir}, func(o *Options) {
		o.Load = func() (config.Config, error) {
			if r.broken.Load() {
				return config.Config{}, errors.New("baton.yaml:7:5: jobs[0].schedule: it is empty")
			}
			return *r.next.Load(), nil
		}
	})
	return r
}

// reload puts a configuration with other jobs into force.
func (r *reloading) reload(jobs ...config.Job) {
	r.t.Helper()
	r.config.Jobs = jobs
	c := r.config.WithDefaults()
	r.next.Store(&c)
	if err := reloadOver(r.t, r.socket); err != nil {
		r.t.Fatal(err)
	}
}

// reloadOver requests a reload as baton reload does.
func reloadOver(t *testing.T, socket string) error {
	c, err := operate.DialSocket(socket)
	if err != nil {
		return err
	}
	_, err = c.Do(t.Context(), operate.Order{Kind: operate.KindReload, By: "x"})
	return errors.Join(err, c.Close())
}

// marking returns a job that writes a mark when it begins, and another mark when it ends after a while.
func (r *reloading) marking(name, schedule, takes string) config.Job {
	return config.Job{Name: name, Schedule: schedule, Shell: true, Command: config.Command{
		fmt.Sprintf("echo %[1]s begins $BATON_SLOT >> %[2]s; sleep %[3]s; echo %[1]s ends >> %[2]s", name, r.marks, takes)}}
}

func (r *reloading) snapshot() (s diagnose.Snapshot) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.read("/api/v1/status")), &s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *reloading) count(mark string) int {
	text, err := os.ReadFile(r.marks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Count(string(text), mark)
}

// slots returns the slots of the runs of a job that have begun.
func (r *reloading) slots(job string) (all []time.Time) {
	r.t.Helper()
	text, err := os.ReadFile(r.marks)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if at, begins := strings.CutPrefix(strings.TrimSpace(line), job+" begins "); begins {
			slot, err := time.Parse(time.RFC3339, at)
			if err != nil {
				r.t.Fatal(err)
			}
			all = append(all, slot)
		}
	}
	if len(all) == 0 {
		r.t.Fatalf("%s has not begun", job)
	}
	return all
}

func (r *reloading) awaitMark(mark string, n int) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("%d of %q", n, mark), func() bool { return r.count(mark) >= n })
}

func TestAReloadLeavesRunsAloneAndTheirJobsStartNoMore(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	slow := r.marking("slow", "@every 1s", "2")
	slow.Overlap = config.OverlapAllow
	r.reload(slow, r.marking("kept", "@every 1s", "0"))
	r.awaitMark("slow begins", 1)
	r.awaitMark("kept begins", 1)
	r.reload(r.marking("kept", "@every 1s", "0"), r.marking("new", "@every 1s", "0"))
	reloaded := time.Now()
	r.awaitMark("new begins", 4)
	r.awaitMark("slow ends", r.count("slow begins")) // each of them runs to its end
	// A run may write its mark late, so its slot shows whether it has begun after the reload.
	for _, slot := range r.slots("slow") {
		if slot.After(reloaded) {
			t.Errorf("a job that was removed has run its slot of %v, and was removed by %v", slot, reloaded)
		}
	}
	r.endsWell()
}

func TestARunOfAJobThatWasRemovedCanBeCancelled(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	r.reload(r.marking("runaway", "@every 1s", "60"))
	r.awaitMark("runaway begins", 1)
	r.reload()
	remote := overServers(t, r.config.WithDefaults())
	done, err := remote.cancel(t.Context(), "runaway", "", "by alice")
	if err != nil || len(done.Runs) != 1 {
		t.Errorf("cancelled: %+v, %v", done, err)
	}
	await(t, "its end", func() bool {
		_, err := remote.cancel(t.Context(), "runaway", "", "by alice")
		return errors.Is(err, operate.ErrNoJob)
	})
}

func TestAWrongConfigurationLeavesTheOldOneInForce(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	r.reload(r.marking("a", "@every 1s", "0"))
	r.awaitMark("a begins", 1)

	r.broken.Store(true)
	if err := reloadOver(t, r.socket); err == nil || !strings.Contains(err.Error(), "stays in force:\nbaton.yaml:7:5: jobs[0].schedule") {
		t.Errorf("a configuration that cannot be read: %v", err)
	}
	r.reloadedIs("0")
	r.broken.Store(false)

	other := r.config
	other.Election.LockKey, other.Jobs = "elsewhere", []config.Job{r.marking("b", "@every 1s", "0")}
	other = other.WithDefaults()
	r.next.Store(&other)
	if err := reloadOver(t, r.socket); err == nil || !strings.Contains(err.Error(), "election.lock_key: the setting has changed, and the change needs a restart") {
		t.Errorf("another election: %v", err)
	}
	missing := r.config
	missing.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNFile: filepath.Join(t.TempDir(), "none")}}
	missing = missing.WithDefaults()
	r.next.Store(&missing)
	if err := reloadOver(t, r.socket); err == nil || !strings.Contains(err.Error(), "databases.main.dsn_file: ") {
		t.Errorf("a database whose name cannot be read: %v", err)
	}
	unheard := r.config
	unheard.Notify = []config.Notify{{Name: "ops", Webhook: &config.Webhook{URLFile: filepath.Join(t.TempDir(), "none")}}}
	unheard = unheard.WithDefaults()
	r.next.Store(&unheard)
	wrong, _ := doctor.CheckFiles(unheard, doctor.Options{})
	if err := reloadOver(t, r.socket); err == nil || len(wrong) != 1 || !strings.Contains(err.Error(), wrong[0].Message) {
		t.Errorf("what config check refuses, %v, is answered %v", wrong, err)
	}
	began := r.count("a begins")
	r.awaitMark("a begins", began+2)
	if r.count("b begins") > 0 {
		t.Error("a configuration that was refused is in force")
	}
	r.reload(r.marking("b", "@every 1s", "0"))
	r.awaitMark("b begins", 1)
	r.reloadedIs("1")
}

func (r *reloading) reloadedIs(want string) {
	r.t.Helper()
	if got := r.metric("baton_config_last_reload_successful"); got != want {
		r.t.Errorf("the metric says %s, want %s", got, want)
	}
}

func TestLocksComeAndGoWithTheirJobs(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t)
	r := startReloading(t, configFor(redis.URL()))
	own := func(name, lock, takes string) config.Job {
		j := r.marking(name, "@every 1s", takes)
		j.Lock = lock
		return j
	}
	held := func() []string {
		s := r.snapshot()
		var keys []string
		for _, l := range s.Locks {
			if l.Leader != nil {
				keys = append(keys, l.Key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	r.leads()
	r.reload(own("a", "locks-a", "0"), own("b", "locks-b", "1.5"))
	r.awaitMark("a begins", 1)
	r.awaitMark("b begins", 1)
	await(t, "both locks to be held", func() bool { return slices.Equal(held(), []string{"locks-a", "locks-b"}) })

	r.reload(own("a", "locks-a", "0")) // b still runs, under its lock
	r.reload(own("a", "locks-a", "0"), own("b", "locks-b", "0"))
	began := r.count("b begins")
	r.awaitMark("b ends", began)
	r.awaitMark("b begins", began+2)

	r.reload(own("a", "locks-a", "0"))
	store := redistest.Open(t, redisconn.Options{URL: redis.URL()})
	view := redislock.NewElection(store, "locks-b", script.String)
	await(t, "the lock that nothing is under to be released", func() bool {
		p, err := view.State(t.Context(), 1)
		return err == nil && p.Owner == ""
	})
	r.reload(own("b", "locks-b", "0"))
	began = r.count("b begins")
	r.awaitMark("b begins", began+1)
	r.endsWell()
	for _, key := range []string{"baton", "locks-a", "locks-b"} {
		if p, err := redislock.NewElection(store, key, script.String).State(t.Context(), 0); err != nil || p.Owner != "" {
			t.Errorf("lock %s after the end: %+v, %v", key, p.Owner, err)
		}
	}
}

func TestAFlushGoesOnIntoAnotherDatabaseAfterAReload(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	dbs := []*testsupport.Database{testsupport.SQLite(t), testsupport.SQLite(t)}
	c := configFor(server.URL())
	into := func(db *testsupport.Database) {
		c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: db.DSN}}
	}
	for _, db := range dbs {
		db.Exec(t, "CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL)")
	}
	into(dbs[0])
	flush := config.Job{Name: "views", Schedule: "@every 100ms", Flush: config.Flush{
		From: config.From{Type: spec.Counters, Key: "views"}, To: config.To{Database: "main", Table: "articles", Key: []string{"id"}},
		Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
	}}
	c.Jobs = []config.Job{flush}
	r := startReloading(t, c)
	conn := server.Conn()
	rows := func(i int) int { return len(dbs[i].Rows(t, "SELECT id FROM articles")) }
	const batches = 40
	for i := range batches {
		if _, err := conn.Do("HINCRBY", "views", i, 1); err != nil {
			t.Fatal(err)
		}
		if i == batches/2 {
			await(t, "rows in the first", func() bool { return rows(0) > 0 })
			into(dbs[1])
			r.config.Databases = c.Databases
			r.reload(flush)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("of %d rows the first has %v, the second %v", batches, dbs[0].Rows(t, "SELECT * FROM articles"), dbs[1].Rows(t, "SELECT * FROM articles"))
			t.Logf("ledgers: %v and %v", dbs[0].Rows(t, "SELECT * FROM baton_ledger"), dbs[1].Rows(t, "SELECT * FROM baton_ledger"))
			keys, err := redis.Strings(conn.Do("KEYS", "*views*"))
			t.Logf("in Redis: %q, %v", keys, err)
		}
	})
	await(t, "all rows to be in one of both", func() bool { return rows(0)+rows(1) == batches })
	if rows(0) == 0 || rows(1) == 0 {
		t.Errorf("%d rows in the first, %d in the second: want some in each", rows(0), rows(1))
	}
}

func TestAJobThatRunsAllTheTimeIsStartedAnewIfItHasChanged(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	always, other := r.marking("first", "@always", "60"), r.marking("kept", "@always", "60")
	always.Name = "server"
	r.reload(always, other)
	r.awaitMark("first begins", 1)
	r.awaitMark("kept begins", 1)
	again := r.marking("second", "@always", "60")
	again.Name = "server"
	r.reload(again, other)
	r.awaitMark("second begins", 1)
	if n, kept := r.count("first begins"), r.count("kept begins"); n != 1 || kept != 1 {
		t.Errorf("the one that changed began %d times, the other %d", n, kept)
	}
}

func TestNodesWhoseJobsDifferFromTheLeadersDrift(t *testing.T) {
	t.Parallel()
	url := testsupport.StartRedis(t).URL()
	a := startReloading(t, configFor(url))
	a.leads()
	c := configFor(url)
	c.Node.ID = "b"
	b := startReloading(t, c)
	drifts := func(node string) func() bool {
		return func() bool {
			for _, n := range a.snapshot().Nodes {
				if n.ID == node {
					return n.Drift
				}
			}
			return false
		}
	}
	await(t, "both nodes to be there", func() bool { return len(a.snapshot().Nodes) == 2 })
	if drifts("b")() {
		t.Error("a node with the same jobs drifts")
	}
	job := config.Job{Name: "j", Schedule: "@hourly", Command: config.Command{"/bin/true"}}
	a.reload(job)
	await(t, "the other node to drift", drifts("b"))
	b.reload(job)
	await(t, "the other node to drift no more", func() bool { return !drifts("b")() })
}

// A node whose last job a reload removes does not keep other nodes from running their jobs.
func TestALeaderWithoutJobsGivesTheLeadUpOnceItsRunsHaveEnded(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	r.reload(r.marking("slow", "@every 1s", "2"))
	r.awaitMark("slow begins", 1)
	r.config.Node.Candidate = new(false) // this is the default without jobs
	r.reload()
	await(t, "the end of the term", func() bool { return r.logs.FilterMessage("no longer leading").Len() == 1 })
	if begun, ended := r.count("slow begins"), r.count("slow ends"); begun != ended {
		t.Errorf("%d runs had begun, and %d came to their end", begun, ended)
	}
	r.config.Node.Candidate = new(true)
	r.reload(r.marking("again", "@every 1s", "0"))
	r.awaitMark("again begins", 1)
	if s := r.snapshot(); len(s.Events) < 2 || s.Events[1].Code != string(elector.CodeAbdicated) || !strings.Contains(s.Events[1].Reason, "since a reload") {
		t.Errorf("events %+v", s.Events)
	}
	r.endsWell()
}
