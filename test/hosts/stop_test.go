package hosts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	lab "baton/internal/testsupport/hosts"
)

const (
	viewsJob = `- name: views
  schedule: "@every 100ms"
  flush:
    from: {type: counters, key: views}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: {from: $value, op: add}}
`
	// polite is a command that takes a moment to end when it gets the order to end.
	polite = `trap 'sleep 0.3; echo ended $BATON_EPOCH $EPOCHREALTIME >> /var/lib/baton/polite; exit 0' TERM
echo began $BATON_EPOCH >> /var/lib/baton/polite
while :; do sleep 0.05; done
`
	politeJob = `- name: polite
  schedule: "@always"
  command: [/bin/bash, /opt/polite]
`
)

// newFlushSite returns a site with a database for flushes.
func newFlushSite(t *testing.T, p plan) (*site, *lab.Server) {
	t.Helper()
	var pg *lab.Server
	p.config = "databases:\n  main: {driver: postgres, dsn: %q}\njobs:\n" + viewsJob + politeJob
	p.before = func(s *site, p *plan) {
		pg = s.Postgres("db")
		pg.Exec("CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
		p.config = fmt.Sprintf(p.config, pg.DSN())
	}
	p.prepare = func(h *lab.Host) { h.Write("/opt/polite", polite) }
	return newSite(t, p), pg
}

// counting increments a counter until stop is called. stop returns the last value of the counter.
func (s *site) counting() (stop func() int64) {
	s.t.Helper()
	conn := s.redis.Conn()
	ask, done := make(chan struct{}), make(chan int64)
	go func() {
		var n int64
		for {
			select {
			case <-ask:
				done <- n
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := conn.Do("HINCRBY", "views", n%50, 1); err == nil {
				n++
			}
		}
	}()
	return func() int64 { close(ask); return <-done }
}

// The test checks that a stop ends the jobs, records their end and releases the lock, and that the other host then leads immediately and
// continues exactly.
func TestAStopDrainsAndReleases(t *testing.T) {
	s, pg := newFlushSite(t, plan{})
	stop := s.counting()
	m := measure{what: "systemctl stop of a leader whose command takes 0.3 s to end → other leads", limit: 1500 * time.Millisecond}
	lead := measure{what: "  of which after its command had ended", limit: 500 * time.Millisecond}
	for range 3 {
		leader := s.settled()
		epoch, old := s.epoch(), s.owner()
		s.Await("the command to run", func() bool {
			text, _ := leader.Read("/var/lib/baton/polite")
			return strings.Contains(text, fmt.Sprintf("began %d\n", epoch))
		})
		asked := time.Now()
		leader.Must("systemctl", "stop", "--no-block", unit)
		led := s.successor(old)
		m.add(led.Sub(asked))
		text, _ := leader.Read("/var/lib/baton/polite")
		ended := stampOf(t, text, epoch)
		lead.add(led.Sub(ended))
		if released := s.releasedAt(epoch); ended.After(released) {
			t.Errorf("the lock was released %v before the command had ended", ended.Sub(released))
		}
		s.Await("the service to be stopped", func() bool { return leader.Property(unit, "ActiveState") == "inactive" })
		if result := leader.Property(unit, "Result"); result != "success" {
			t.Errorf("the stop's result is %s", result)
		}
		leader.Must("systemctl", "start", unit)
	}
	m.report(t)
	lead.report(t)
	s.settled()
	want := stop()
	s.exact(pg.Rows, want)
}

// stampOf returns the time when the command of an epoch ended, which the command itself has written.
func stampOf(t *testing.T, text string, epoch int64) time.Time {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 || words[1] != strconv.FormatInt(epoch, 10) {
			continue
		}
		seconds, micros, _ := strings.Cut(words[2], ".")
		n, err := strconv.ParseInt(seconds+micros, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.UnixMicro(n)
	}
	t.Errorf("the command of epoch %d was not told to end; it wrote:\n%s", epoch, text)
	return time.Time{}
}

// After a power cut no process can release the lock, so the lease must run out.
func TestAHostThatLosesItsPowerIsSucceededWhenTheLeaseEnds(t *testing.T) {
	const ttl = 3 * time.Second
	s, pg := newFlushSite(t, plan{ttl: ttl})
	stop := s.counting()
	m := measure{what: "power cut of the leader's host, ttl 3s → the other host has the lock", limit: ttl + 250*time.Millisecond}
	for range 2 {
		leader := s.settled()
		old := s.owner()
		cut := time.Now()
		leader.PowerCut()
		m.add(s.successor(old).Sub(cut))
		leader.Boot() // the disk is unchanged, so the service is enabled and joins
		if now := s.settled(); now == leader {
			t.Error("the host that has just booted leads")
		}
	}
	m.report(t)
	s.exact(pg.Rows, stop())
}

// exact waits until all changes are flushed, and compares the rows with the wanted sum.
func (s *site) exact(rows func(string) []string, want int64) {
	s.t.Helper()
	sum := func() string { return strings.Join(rows("SELECT coalesce(sum(views), 0)::text FROM articles"), " ") }
	testsupport.Await(s.t, fmt.Sprintf("%d views in the database", want), func() bool { return sum() == fmt.Sprint(want) })
	note("%-66s %3d  lost 0, doubled 0", s.t.Name()+": changes written meanwhile, in PostgreSQL", want)
}
