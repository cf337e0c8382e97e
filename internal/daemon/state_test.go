package daemon

import (
	"context"
	"fmt"
	"net"
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
	"baton/internal/daemon/epochs"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

// wins starts a daemon and returns how long it took until the daemon led, and under which epoch.
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
	r.endsWell()
	return took, epoch
}

// quarantined reports whether the history says that no node could win for a while.
func quarantined(t *testing.T, server *testsupport.Redis) bool {
	t.Helper()
	return strings.Contains(fmt.Sprintf("%s", server.Client(t).Do("XRANGE", "{baton}:events", "-", "+")), "quarantined")
}

func forgetAll(t *testing.T, server *testsupport.Redis) {
	t.Helper()
	server.Client(t).Do("FLUSHALL")
}

// A node that knows of an earlier term waits for one lease if Redis does not know this term, because the leader may be alive. A node
// that knows of no term treats Redis as new.
func TestANodeRemembersThatThereWasATerm(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	c := configFor(server.URL())
	c.Election = config.Election{TTL: 4 * time.Second}
	c = c.WithDefaults()
	env := map[string]string{"STATE_DIRECTORY": t.TempDir()}
	wins(t, server, c, env)
	if quarantined(t, server) {
		t.Error("a new node waited in a new redis")
	}
	known := epochs.Open(epochs.Path(lookup(env)), "baton", &epochs.File{}, zap.NewNop())
	// A database may raise the epoch so that it is ahead of Redis' clock.
	known.Heard(known.Known().Epoch+10_000_000, 0)
	known.Write()

	forgetAll(t, server)
	lease := c.Election.TTL // the lease of the term that Redis has forgotten, which counts for its leader
	c.Election = config.Election{TTL: 1500 * time.Millisecond}
	c = c.WithDefaults()
	took, epoch := wins(t, server, c, env)
	if took < lease || epoch <= known.Known().Epoch {
		t.Errorf("after redis lost everything a node led after %v under epoch %d; want a lease of %v to pass, and more than %d", took, epoch, lease, known.Known().Epoch)
	}
	if !quarantined(t, server) {
		t.Error("the history does not tell of the quarantine")
	}
	forgetAll(t, server)
	wins(t, server, c, nil)
	if quarantined(t, server) {
		t.Error("a node without any memory waited")
	}
}

// flushing returns a configuration with one job that writes to that database.
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

// Whatever a database does, a node starts.
func TestADatabaseThatIsAwayDoesNotHoldUpAStart(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	server := testsupport.StartRedis(t)
	for name, address := range map[string]string{"refuses": "127.0.0.1:1", "hangs": hangs.Addr().String()} {
		c := flushing(configFor(server.URL()), "postgres", "postgres://u:p@"+address+"/d?sslmode=disable")
		t.Logf("a database that %s", name)
		r := start(t, c, nil)
		r.leads()
		r.endsWell()
	}
}

// An epoch that a database has raised is seen in all places that show the epoch.
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
	await(t, "the epoch to be remembered", func() bool { return o.epochs.Known().Epoch == 15 })
	if _, found, err := crash.ReadLease(o.leaseFile); found || err != nil {
		t.Errorf("the lease file of a term that is over is back: %v, %v", found, err)
	}
}

// A node that crashes after this moment delays no other node, because the file says which lock is to be released.
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
	o.updateLease() // this is later than the release
	if _, found, err := crash.ReadLease(o.leaseFile); found || err != nil {
		t.Errorf("the lease file is back: %v, %v", found, err)
	}
}
