package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

func TestTheEpochFileKeepsTheHighestOfEveryElection(t *testing.T) {
	path := statePath(lookup(map[string]string{"STATE_DIRECTORY": t.TempDir() + ":/elsewhere"}))
	log := zap.NewNop()
	a, b := openEpochs(path, "a", log), openEpochs(path, "b", log)
	a.heard(7, time.Second)
	a.heard(5, time.Hour)
	a.write()
	b.heard(9, 0)
	b.heard(absurd, 0) // written into Redis by hand
	b.write()
	a.heard(8, 0) // whose lease nobody has told
	a.write()
	if again := openEpochs(path, "a", log).known(); again != (lastTerm{8, 1000}) {
		t.Errorf("a is read as %+v, want epoch 8 and the last lease that was told", again)
	}
	if again := openEpochs(path, "b", log).known(); again != (lastTerm{9, 0}) {
		t.Errorf("b is read as %+v, want 9", again)
	}
	if again := openEpochs(path, "c", log).known(); again != (lastTerm{}) {
		t.Errorf("an election that never was is read as %+v", again)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner alone", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left beside the file: %v, %v", left, err)
	}
}

func TestABadEpochFileIsToldAndReplaced(t *testing.T) {
	for _, text := range []string{`{"a": `, "", "null", "[]", `{"a": 1.5}`, `{"a": 99999999999999999999}`} {
		core, logs := recorder.New(zapcore.WarnLevel)
		path := filepath.Join(t.TempDir(), "epoch.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := openEpochs(path, "a", zap.New(core))
		if e.known() != (lastTerm{}) || logs.Len() != 1 || !strings.Contains(logs.All()[0].ContextMap()["error"].(string), path) {
			t.Errorf("%q: known %+v, told %v", text, e.known(), logs.All())
		}
		e.heard(3, 0)
		e.write()
		if again := openEpochs(path, "a", zap.NewNop()).known(); again.Epoch != 3 {
			t.Errorf("%q: read as %+v, want 3", text, again)
		}
	}
}

// Whoever repairs an epoch that was written by hand must not find it again.
func TestAnEpochInTheFileThatCannotBeIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "epoch.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"a": %d, "b": -4, "c": 5}`, int64(absurd)), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": 0, "b": 0, "c": 5} {
		if got := openEpochs(path, key, zap.NewNop()).known().Epoch; got != want {
			t.Errorf("%s is read as %d, want %d", key, got, want)
		}
	}
}

func TestAnEpochFileThatCannotBeWrittenIsToldOnce(t *testing.T) {
	core, logs := recorder.New(zapcore.WarnLevel)
	e := openEpochs(filepath.Join(t.TempDir(), "gone", "epoch.json"), "a", zap.New(core))
	for epoch := range int64(5) {
		e.heard(epoch, 0)
		e.write()
	}
	if logs.Len() != 1 {
		t.Errorf("told %d times: %v", logs.Len(), logs.All())
	}
	if e.known().Epoch != 4 {
		t.Errorf("known %+v, want 4", e.known())
	}
	without := openEpochs("", "a", zap.New(core))
	without.heard(1, 0)
	without.write()
	if logs.Len() != 1 {
		t.Errorf("without a state directory: %v", logs.All())
	}
}

// wins starts a daemon and returns how long it took to lead, and under which epoch.
func wins(t *testing.T, server *testsupport.Redis, c config.Config, env map[string]string) (time.Duration, int64) {
	t.Helper()
	began := time.Now()
	r := start(t, c, env)
	r.leads()
	took := time.Since(began)
	epoch, err := redis.Int64(server.Conn().Do("HGET", "{baton}:term", "epoch"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	return took, epoch
}

func forgetAll(t *testing.T, server *testsupport.Redis) {
	t.Helper()
	if _, err := server.Conn().Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
}

// A node that knows of an earlier term waits one lease in a Redis that does not: its
// leader may be alive. One that knows of none takes Redis for new.
func TestANodeRemembersThatThereWasATerm(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	c := configFor(server.URL())
	c.Election = config.Election{TTL: 4 * time.Second}
	c = c.WithDefaults()
	env := map[string]string{"STATE_DIRECTORY": t.TempDir()}
	if took, _ := wins(t, server, c, env); took >= c.Election.TTL {
		t.Errorf("a new node led a new redis after %v", took)
	}
	known := openEpochs(statePath(lookup(env)), "baton", zap.NewNop())
	// As a database may do, so that it is beyond Redis' clock.
	known.heard(known.known().Epoch+10_000_000, 0)
	known.write()

	forgetAll(t, server)
	lease := c.Election.TTL // of the term that Redis has forgotten: its leader goes by that one
	c.Election = config.Election{TTL: 1500 * time.Millisecond}
	c = c.WithDefaults()
	took, epoch := wins(t, server, c, env)
	if took < lease || epoch <= known.known().Epoch {
		t.Errorf("after redis lost everything a node led after %v under epoch %d; want a lease of %v to pass, and more than %d", took, epoch, lease, known.known().Epoch)
	}
	forgetAll(t, server)
	if took, _ := wins(t, server, c, nil); took >= c.Election.TTL {
		t.Errorf("a node without any memory led after %v", took)
	}
}

// flushing is a configuration with one job into that database.
func flushing(c config.Config, driver, dsn string) config.Config {
	c.Databases = map[string]config.Database{"main": {Driver: driver, DSNInline: dsn}}
	c.Jobs = []config.Job{{Name: "views", Schedule: "@every 1h", Flush: config.Flush{
		From: config.From{Type: spec.Counters, Key: "views"}, To: config.To{Database: "main", Table: "articles", Key: []string{"id"}},
		Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value"}},
	}}}
	return c.WithDefaults()
}

func TestADatabaseRemembersForANodeThatCannot(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	db := testsupport.SQLite(t)
	c := flushing(configFor(server.URL()), db.Driver, db.DSN)
	c.Election = config.Election{TTL: 1500 * time.Millisecond}
	c = c.WithDefaults()
	store, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSN})
	if err != nil {
		t.Fatal(err)
	}
	high, lease := time.Now().UnixMilli()+10_000_000, 4*time.Second
	if err := store.TakeOver(t.Context(), flush.Fence{Job: "views", Epoch: high, Owner: "o", NodeID: "b", Lease: lease}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if took, epoch := wins(t, server, c, nil); took < lease || epoch <= high {
		t.Errorf("led after %v under epoch %d; want a lease of %v to pass, and more than %d", took, epoch, lease, high)
	}
}

// A fence that was written by hand does not raise the epochs of all, but tells that
// there was a term. Where another database or this host knows of such epochs, a clock was
// wrong.
func TestAForgedFenceIsNotCountedOnFrom(t *testing.T) {
	far := time.Now().Add(31 * 24 * time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		own         int64
		main, other int64
		want        int64
	}{
		"forged":              {0, far, 0, 1},
		"forged beside a":     {0, far, 8, 8},
		"vouched for":         {0, far, far - 5, far},
		"this host knows it":  {far - 5, far, 0, far},
		"heard of and forged": {5, far, 0, 5},
		"within reason":       {0, far - 3*24*time.Hour.Milliseconds(), 0, far - 3*24*time.Hour.Milliseconds()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbs := site.Databases{}
			conf := config.Config{}
			for _, d := range []struct {
				name  string
				epoch int64
			}{{"main", c.main}, {"other", c.other}} {
				if d.epoch == 0 {
					continue
				}
				db := testsupport.SQLite(t)
				store, err := open.Database(db.Driver, sql.Options{Name: d.name, DSN: db.DSN})
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				if err := store.TakeOver(t.Context(), flush.Fence{Job: d.name, Epoch: d.epoch, Owner: "o", NodeID: "b", Lease: time.Second}); err != nil {
					t.Fatal(err)
				}
				dbs[d.name] = store
				conf.Jobs = append(conf.Jobs, config.Job{Name: d.name, Flush: config.Flush{To: config.To{Database: d.name}}})
			}
			e := openEpochs("", "baton", zap.NewNop())
			e.note(c.own, 0)
			if got := e.last(t.Context(), conf, dbs); got != (lastTerm{c.want, 1000}) {
				t.Errorf("%+v, want epoch %d and a lease of 1000 ms", got, c.want)
			}
		})
	}
}

// Whatever a database does, a node starts.
func TestADatabaseThatIsAwayDoesNotHoldUpAStart(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never says anything
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	server := testsupport.StartRedis(t)
	for name, address := range map[string]string{"refuses": "127.0.0.1:1", "hangs": hangs.Addr().String()} {
		c := flushing(configFor(server.URL()), "postgres", "postgres://u:p@"+address+"/d?sslmode=disable")
		began := testsupport.StartStopwatch(t)
		r := start(t, c, nil)
		if took := began.Took(); took > 10*askWithin {
			t.Errorf("%s: ready after %v", name, took)
		}
		r.leads()
		if err := r.end(); err != nil {
			t.Error(err)
		}
	}
}

// What a database makes of a term's epoch is seen wherever the epoch is.
func TestARaisedEpochReachesTheLeaseFile(t *testing.T) {
	o, told := newObserver(t)
	o.leaseFile = filepath.Join(t.TempDir(), "lease.json")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.keepFiles(ctx) }()
	defer func() { cancel(); <-done }()
	o.observe(elector.Event{Kind: elector.EventWon, Owner: "o", Epoch: 7})
	o.observe(elector.Event{Kind: elector.EventRenewal, Epoch: 12})
	await(t, "the lease file to have the epoch", func() bool {
		l, found, err := crash.ReadLease(o.leaseFile)
		return err == nil && found && l == crash.Lease{LockKey: "baton", Owner: "o", Epoch: 12}
	})
	if last := (*told)[len(*told)-1]; last != "leading epoch 12" {
		t.Errorf("systemd knows %q", last)
	}
	o.observe(elector.Event{Kind: elector.EventReleased, Owner: "o", Epoch: 12, Released: true})
	o.observe(elector.Event{Kind: elector.EventStandby, Holder: "b", Epoch: 15})
	await(t, "the epoch to be remembered", func() bool { return o.epochs.known().Epoch == 15 })
	if _, found, err := crash.ReadLease(o.leaseFile); found || err != nil {
		t.Errorf("the lease file of a term that is over is back: %v, %v", found, err)
	}
}

// Whoever crashes after that holds up nobody: the file says which lock is to be released.
func TestTheLeaseFileIsThereBeforeAnybodyIsToldOfTheTerm(t *testing.T) {
	o, _ := newObserver(t)
	o.leaseFile = filepath.Join(t.TempDir(), "lease.json")
	var told []string
	tell := func(what string) {
		if _, found, err := crash.ReadLease(o.leaseFile); !found || err != nil {
			t.Errorf("before there was a lease file %s", what)
		}
		told = append(told, what)
	}
	core, _ := recorder.New(zap.InfoLevel)
	o.log = zap.New(core, zap.Hooks(func(e zapcore.Entry) error { tell("the log was told: " + e.Message); return nil }))
	o.notify = func(state string) { tell("systemd was told: " + state) }
	o.observe(elector.Event{Kind: elector.EventWon, Owner: "o", Epoch: 7})
	if len(told) != 2 {
		t.Errorf("told: %q", told)
	}
}

func TestALeaseFileDoesNotComeBackAfterItsTerm(t *testing.T) {
	o, _ := newObserver(t)
	o.leaseFile = filepath.Join(t.TempDir(), "lease.json")
	o.observe(elector.Event{Kind: elector.EventWon, Owner: "o", Epoch: 7})
	o.observe(elector.Event{Kind: elector.EventRenewal, Epoch: 12})
	o.observe(elector.Event{Kind: elector.EventReleased, Owner: "o", Epoch: 12, Released: true})
	o.updateLease() // later than the release
	if _, found, err := crash.ReadLease(o.leaseFile); found || err != nil {
		t.Errorf("the lease file is back: %v, %v", found, err)
	}
}
