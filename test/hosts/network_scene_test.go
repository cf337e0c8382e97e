package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lab "baton/internal/testsupport/hosts"
	"baton/internal/testsupport/nemesis"
)

// tables are what the flush jobs fill; each job is called as its table.
var tables = []string{"articles", "orders", "visits"}

const (
	actsPath   = "/var/lib/baton/acts"
	actsScript = "/opt/acts"
	eastLock   = "east"
)

// The pulse beats for as long as a host may act as the leader. It does not obey SIGTERM,
// nor does its child in a session of its own.
const networkJobs = `
databases:
  main: {driver: postgres, dsn: %q}
history: {keep: 10000}
defaults: {grace: 300ms}
jobs:
- name: articles
  schedule: "@every 250ms"
  flush:
    from: {type: counters, key: articles}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: {from: $value, op: add}}
- name: orders
  schedule: "@every 250ms"
  flush: {from: {type: list, key: orders}, to: {database: main, table: orders}}
- name: visits
  schedule: "@always"
  flush: {from: {type: stream, key: visits, retain: 1ms}, to: {database: main, table: visits}}
- {name: pulse, schedule: "@always", command: [/bin/bash, ` + actsScript + `, always]}
- {name: tick, schedule: "@every 1s", command: [/bin/bash, ` + actsScript + `, "300"]}
- {name: other, lock: ` + eastLock + `, schedule: "@every 1s", command: [/bin/bash, ` + actsScript + `, "200"]}
`

// acts is what commands run: they write down that they begin, that they live, every ten
// milliseconds, and that they end, each by one write(2).
const acts = `say() { echo "$1 ${EPOCHREALTIME/./} $BATON_RUN_ID ${*:2}" >> ` + actsPath + `; }
beat() { exec 9<> <(:); while (( ${EPOCHREALTIME/./} < $1 )); do read -t 0.01 -u 9; say beat; done; }
export -f say beat
say begin "$BATON_LOCK_KEY" "$BATON_EPOCH" "$BATON_JOB" "$BATON_ATTEMPT" "$BATON_SLOT"
if [[ $1 == always ]]; then
	trap '' TERM HUP INT
	setsid bash -c 'beat 9000000000000000' &
	beat 9000000000000000
fi
trap 'say end; exit 143' TERM
beat $(( ${EPOCHREALTIME/./} + $1 * 1000 ))
say end
`

// Who has written to a table, and who has taken the fence, in transactions whose time of
// commit the database keeps.
const networkSQL = `
CREATE TABLE articles (id text PRIMARY KEY, views bigint NOT NULL DEFAULT 0);
CREATE TABLE orders   (id text NOT NULL, n bigint NOT NULL);
CREATE TABLE visits   (id text NOT NULL, n bigint NOT NULL);
CREATE TABLE wrote (job text NOT NULL, addr text NOT NULL);
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO wrote VALUES (TG_TABLE_NAME, host(inet_client_addr())); RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON articles FOR EACH STATEMENT EXECUTE FUNCTION note_write();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION note_write();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON visits FOR EACH STATEMENT EXECUTE FUNCTION note_write();
`

const networkFenceSQL = `
CREATE TABLE took (n bigserial PRIMARY KEY, job text NOT NULL, epoch bigint NOT NULL, node text NOT NULL);
CREATE FUNCTION note_fence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO took (job, epoch, node) VALUES (NEW.job, NEW.epoch, NEW.node_id); RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON baton_fence FOR EACH ROW EXECUTE FUNCTION note_fence();
INSERT INTO took (job, epoch, node) SELECT job, epoch, node_id FROM baton_fence;
`

// wire is a site whose network is broken. It belongs to the test's goroutine.
type wire struct {
	*site
	db      *lab.Server
	log     *nemesis.Timeline
	strikes []strike
	struck  atomic.Int64 // how many strikes there were, for the writer
	want    map[string]map[string]int64
	wrongs  []string
	steady  func() time.Duration // how far the wall clock was stepped
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{log: &nemesis.Timeline{}, want: map[string]map[string]int64{}}
	w.site = newSite(t, plan{
		hosts: 3, ttl: lease, config: networkJobs, several: true,
		// Half a second for an attempt: a way there and back of 0.4 s is bad, and good enough.
		election: ", attempt_timeout: 500ms",
		before: func(s *site, p *plan) {
			w.db = s.Postgres("db", "track_commit_timestamp=on")
			w.db.Exec(networkSQL)
			p.config = fmt.Sprintf(p.config, w.db.DSN())
		},
		prepare: func(h *lab.Host) { h.Write(actsScript, acts) },
	})
	w.Await("every job to take its fence", func() bool {
		if len(w.db.Rows("SELECT 1::text FROM pg_tables WHERE tablename = 'baton_fence'")) == 0 {
			return false
		}
		return strings.Join(w.db.Rows("SELECT count(*)::text FROM baton_fence"), "") == fmt.Sprint(len(tables))
	})
	w.db.Exec(networkFenceSQL)
	wall, start := time.Now().Round(0), time.Now()
	w.steady = func() time.Duration { return time.Now().Round(0).Sub(wall) - time.Since(start) }
	return w
}

// leader is the host that leads, as Redis has it; "" for none.
func (w *wire) leader() string {
	w.t.Helper()
	return w.leaderName()
}

// tick is called all the time.
func (w *wire) tick() {
	for _, s := range w.strikes {
		if s.flaps > 0 && s.ended.IsZero() {
			w.apply()
			break
		}
	}
	time.Sleep(5 * time.Millisecond)
}

// writing changes Redis over a way of its own that nothing breaks, so that every write is
// acknowledged, and notes what. What it returns stops that, and waits until all of it is
// in the database, or a while.
func (w *wire) writing() (stop func()) {
	w.t.Helper()
	conn := w.redis.Conn()
	ctx, cancel := context.WithCancel(w.t.Context())
	for _, table := range tables {
		w.want[table] = map[string]int64{}
	}
	failed := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			burst := 1
			if n%100 == 99 {
				burst = 300 // batches of all sizes
			}
			round := w.struck.Load()
			for i := range burst {
				id := fmt.Sprintf("%03d-%d-%d", round, n, i)
				field := fmt.Sprintf("%03d-%d", round, (n+i)%40)
				_ = conn.Send("HINCRBY", "articles", field, 1+n%3) // told by Flush
				_ = conn.Send("RPUSH", "orders", fmt.Sprintf(`{"id": %q, "n": %d}`, id, n))
				_ = conn.Send("XADD", "visits", "*", "id", id, "n", n)
				w.want["articles"][field] += int64(1 + n%3)
				w.want["orders"][id]++
				w.want["visits"][id]++
			}
			if _, err := conn.Do(""); err != nil {
				failed <- fmt.Errorf("the writer's own way to Redis is gone: %w", err)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		failed <- nil
	}()
	return func() {
		w.t.Helper()
		cancel()
		if err := <-failed; err != nil {
			w.t.Fatal(err)
		}
		w.drain()
	}
}

// drain waits until as much is in the database as was written.
func (w *wire) drain() {
	w.t.Helper()
	const patience = 20 * time.Second
	began := time.Now()
	var sums [2]int64
	for _, n := range w.want["articles"] {
		sums[0] += n
	}
	sums[1] = int64(len(w.want["orders"]))
	want := fmt.Sprintf("%d %d %d", sums[0], sums[1], sums[1])
	query := "SELECT concat_ws(' ', (SELECT coalesce(sum(views), 0) FROM articles), (SELECT count(*) FROM orders), (SELECT count(*) FROM visits))"
	for {
		got := w.db.Rows(query)[0]
		if got == want {
			note("network: %s increments, orders, visits written, all there %v after the last", want, round(time.Since(began)))
			return
		}
		if time.Since(began) > patience {
			w.wrong("%v after the last write there are %s increments, orders, visits in the database, want %s", patience, got, want)
			return
		}
		w.calm(20 * time.Millisecond)
	}
}

// wrong notes what must not be. The test goes on: the rest may tell why.
func (w *wire) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log.Add("WRONG: %s", text)
	w.wrongs = append(w.wrongs, text)
}

func (w *wire) check(wrongs []string) {
	for _, text := range wrongs {
		w.wrong("%s", text)
	}
}

// keep fails the test for what was wrong, and keeps what may tell why where $CHAOS_KEEP
// says: temporary files go with the hosts.
func (w *wire) keep(seed uint64, random bool) {
	const most = 25
	for _, text := range w.wrongs[:min(most, len(w.wrongs))] {
		w.t.Error(text)
	}
	if more := len(w.wrongs) - most; more > 0 {
		w.t.Errorf("and %d more", more)
	}
	if w.t.Failed() {
		w.t.Logf("the faults:\n%s", w.log)
		if random {
			w.t.Logf("CHAOS_SEED=%d replays these faults", seed)
		}
	}
	dir := os.Getenv("CHAOS_KEEP")
	if dir == "" {
		return
	}
	files := map[string]string{"timeline.txt": w.log.String(), "wrong.txt": strings.Join(w.wrongs, "\n")}
	for _, h := range w.hosts {
		files[h.Name+".log"] = h.Must("journalctl", "--no-pager", "--output=cat", "--unit="+unit)
		files[h.Name+".acts"], _ = h.Read(actsPath)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Error(err)
		}
	}
}
