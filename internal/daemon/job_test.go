package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/daemon/work"
	"baton/internal/diagnose"
	"baton/internal/flush/source/spec"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/testsupport"
)

// jobLab holds a Redis, a database with tables, and an operator's client.
type jobLab struct {
	t      *testing.T
	config config.Config
	server *testsupport.Redis
	conn   redis.Conn
	db     *testsupport.Database
	remote operator[*direct.Site]
}

// newJobLab returns a jobLab without jobs.
func newJobLab(t *testing.T) *jobLab {
	t.Helper()
	server := testsupport.StartRedis(t)
	l := &jobLab{t: t, config: configFor(server.URL()), server: server, db: testsupport.SQLite(t)}
	l.conn = server.Conn()
	l.db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	l.config.Databases = map[string]config.Database{"main": {Driver: l.db.Driver, DSNInline: l.db.DSN}}
	return l
}

// job adds the job that flushes counts.
func (l *jobLab) job(name, schedule string) {
	l.config.Jobs = append(l.config.Jobs, config.Job{Name: name, Schedule: schedule, Flush: config.Flush{
		From:    config.From{Type: spec.Counters, Key: name},
		To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
		Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
	}})
}

func (l *jobLab) start() *running {
	l.t.Helper()
	l.config = l.config.WithDefaults()
	l.remote = overServers(l.t, l.config)
	r := start(l.t, l.config, nil)
	r.leads()
	return r
}

func (l *jobLab) do(command string, args ...any) {
	l.t.Helper()
	if _, err := l.conn.Do(command, args...); err != nil {
		l.t.Fatal(err)
	}
}

func (l *jobLab) awaitRows(want string) {
	l.t.Helper()
	await(l.t, "the rows "+want, func() bool { return fmt.Sprint(l.db.Rows(l.t, "SELECT id, views FROM articles ORDER BY id")) == want })
}

func (l *jobLab) state(name string) diagnose.Job {
	l.t.Helper()
	j, err := l.remote.job(l.t.Context(), name)
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

// read returns the content of a page.
func (r *running) read(path string) string {
	r.t.Helper()
	resp, err := http.Get("http://" + r.address + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// metric returns the value of a metric, or "" if there is no such metric.
func (r *running) metric(name string) string {
	_, rest, _ := strings.Cut(r.read("/metrics"), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// epoch waits for the metric of the epoch, which follows a win a moment later.
func (r *running) epoch() (epoch string) {
	r.t.Helper()
	await(r.t, "the epoch", func() bool { epoch = r.metric(`baton_epoch{lock="baton"}`); return epoch != "0" })
	return epoch
}

func TestFlushThatGoesOnAllTheTimeIsOneRunThatTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	r := l.start()
	for i := range 3 {
		l.do("HINCRBY", "views", "7", 10)
		l.awaitRows(fmt.Sprintf("[[7 %d]]", 10*(i+1)))
	}
	await(t, "the progress", func() bool { j := l.state("views"); return j.Running != nil && j.Running.Rows == 3 })
	await(t, "the gauges", func() bool {
		return r.metric(`baton_flush_rows_total{job="views",outcome="written"}`) == "3" &&
			r.metric(`baton_flush_backlog{job="views"}`) == "0" && r.metric(`baton_flush_lag_seconds{job="views"}`) == "0"
	})
	j := l.state("views")
	if j.LastRun != nil || j.ConsecutiveFailures != 0 || *j.Backlog != 0 || j.LagSeconds == nil {
		t.Errorf("state: %+v", j)
	}
	r.endsWell()
	runs, err := l.remote.runs(t.Context(), "views", 10)
	if err != nil || len(runs) != 1 || runs[0].Rows != 3 || runs[0].State != "cancelled" {
		t.Errorf("history: %+v, %v", runs, err)
	}
}

func TestFlushThatGoesOnAllTheTimeFollowsTheDatabaseAndItsPause(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	r := l.start()
	l.do("HINCRBY", "views", "7", 10)
	l.awaitRows("[[7 10]]")
	l.db.Exec(t, "ALTER TABLE articles RENAME TO elsewhere")
	l.do("HINCRBY", "views", "7", 10)
	await(t, "the failure", func() bool { return l.state("views").ConsecutiveFailures > 0 })
	l.db.Exec(t, "ALTER TABLE elsewhere RENAME TO articles")
	l.awaitRows("[[7 20]]")
	await(t, "the failures to be forgotten", func() bool { return l.state("views").ConsecutiveFailures == 0 })

	if _, err := l.remote.pauseJob(t.Context(), "views", "by alice: upgrade", time.Time{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the run to end", func() bool { return l.state("views").Running == nil })
	j := l.state("views")
	if j.Paused == nil || j.Paused.Reason != "by alice: upgrade" || !strings.Contains(j.LastRun.Error, "paused by alice: upgrade") {
		t.Errorf("paused: %+v, last run %+v", j.Paused, j.LastRun)
	}
	await(t, "the page to show it", func() bool {
		return strings.Contains(r.read("/"), "by alice: upgrade") && strings.Contains(r.read("/api/v1/status"), `"by alice: upgrade"`)
	})
	l.do("HINCRBY", "views", "8", 1)
	resumed := testsupport.StartStopwatch(t) // a loop that is not woken up checks every 30 s
	p, err := l.remote.resumeJob(t.Context(), "views", "by alice")
	if err != nil || p.Was == nil {
		t.Errorf("resumed: %+v, %v", p, err)
	}
	l.awaitRows("[[7 20] [8 1]]")
	if took := resumed.Took(); took > 20*time.Second {
		t.Errorf("it took %v to go on", took)
	}
	_ = r.end()
}

func TestWhatWaitsForARunThatRestedIsNotCalledOlderThanItsRest(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	r := l.start()
	l.do("HINCRBY", "views", "7", 10)
	l.awaitRows("[[7 10]]")
	l.db.Exec(t, "ALTER TABLE articles RENAME TO elsewhere")
	const sampled = 2 * work.GaugeEvery // a busy machine checks less often
	time.Sleep(2 * sampled)
	written := time.Now()
	oldest := func() float64 { return (time.Since(written) + sampled + time.Second).Seconds() }
	l.do("HINCRBY", "views", "7", 10)
	await(t, "the failure", func() bool { return l.state("views").ConsecutiveFailures > 0 })
	if j := l.state("views"); *j.Backlog != 1 || *j.LagSeconds > oldest() {
		t.Errorf("backlog %d, lag %.1f s, want at most %.1f", *j.Backlog, *j.LagSeconds, oldest())
	}
	if lag, err := strconv.ParseFloat(r.metric(`baton_flush_lag_seconds{job="views"}`), 64); err != nil || lag > oldest() {
		t.Errorf("the gauge has %v, %v, want at most %.1f", lag, err, oldest())
	}
	_ = r.end()
}

func TestJobIsPausedWhenTooManyRecordsDoNotFit(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@every 200ms")
	l.config.Jobs[0].Flush.DeadLetters.PerBatch = 2
	r := l.start()
	for i := range 5 {
		l.do("HSET", "views", fmt.Sprint("no number ", i), 1)
	}
	await(t, "the pause", func() bool { return l.state("views").Paused != nil })
	if why := l.state("views").Paused.Reason; !strings.HasPrefix(why, "by baton: ") || !strings.Contains(why, "the limit is 2") {
		t.Errorf("reason: %q", why)
	}
	await(t, "missed slots", func() bool { return r.pausedSlots() > 3 })
	runs, err := l.remote.runs(t.Context(), "views", 100)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, run := range runs {
		if run.State == "failed" {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d failed runs, want 1", failed)
	}
	if err := r.end(); err != nil { // and the next leader follows the same order
		t.Error(err)
	}
	next := start(t, l.config, nil)
	next.leads()
	await(t, "missed slots", func() bool { return next.pausedSlots() > 1 })
	if _, err := l.remote.run(t.Context(), "views", "by alice", false); err == nil || !strings.Contains(err.Error(), "baton job resume views") {
		t.Errorf("run of a paused job: %v", err)
	}
	l.do("DEL", "{views}:baton:stage", "{views}:baton:meta")
	l.do("HINCRBY", "views", "7", 3)
	if _, err := l.remote.resumeJob(t.Context(), "views", "by alice"); err != nil {
		t.Fatal(err)
	}
	l.awaitRows("[[7 3]]")
	_ = next.end()
}

// pausedSlots returns the number of slots that were missed because views was paused.
func (r *running) pausedSlots() int {
	n, _ := strconv.Atoi(r.metric(`baton_job_missed_total{job="views",reason="paused"}`))
	return n
}

func TestManualRunIsWatchedToItsEnd(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@yearly")
	l.do("HINCRBY", "views", "7", 10)
	r := l.start()
	run, err := l.remote.run(t.Context(), "views", "by alice: a test", false)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := operate.WatchRun(t.Context(), l.remote.to, "views", run.Run.ID, func(operate.JobRun) {})
	if err != nil || ended.Run.State != "succeeded" || ended.Run.Rows != 1 || ended.Run.Trigger != "manual" || ended.Run.ID != run.Run.ID {
		t.Errorf("ended: %+v, %v", ended, err)
	}
	l.awaitRows("[[7 10]]")
	if _, err := l.remote.run(t.Context(), "clicks", "by alice", false); !errors.Is(err, operate.ErrNoJob) || !strings.Contains(err.Error(), "views") {
		t.Errorf("an unknown job: %v", err)
	}
	newer := l.config
	newer.Jobs = append(slices.Clone(newer.Jobs), newer.Jobs[0])
	newer.Jobs[len(newer.Jobs)-1].Name = "newer"
	if _, err := overServers(t, newer).run(t.Context(), "newer", "by alice", false); err == nil || !strings.Contains(err.Error(), `the leader has no job "newer"`) {
		t.Errorf("a job that the leader does not have: %v", err)
	}
	r.endsWell()
	if _, err := l.remote.run(t.Context(), "views", "by alice", false); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("without a leader: %v", err)
	}
}

func TestManualRunIsRefusedWhileTheJobRunsAndWatchingOneDoesNotEndIt(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	r := l.start()
	await(t, "the run", func() bool { return l.state("views").Running != nil })
	if _, err := l.remote.run(t.Context(), "views", "by alice", false); err == nil || !strings.Contains(err.Error(), "already running: its run ") {
		t.Errorf("a running job: %v", err)
	}
	id := l.state("views").Running.ID
	ctx, cancel := context.WithCancel(t.Context())
	shown := 0
	_, err := operate.WatchRun(ctx, l.remote.to, "views", id, func(operate.JobRun) {
		if shown++; shown == 3 {
			cancel()
		}
	})
	if !operate.Ended(err) {
		t.Errorf("watching: %v", err)
	}
	if now := l.state("views").Running; now == nil || now.ID != id {
		t.Errorf("the run has ended with the watching: %+v", now)
	}
	_ = r.end()
}

func TestWhatWaitsIsKnownOfJobsThatHaveNotRun(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@yearly")
	for i := range 5 {
		l.do("HINCRBY", "views", fmt.Sprint(i), 1)
	}
	r := l.start()
	await(t, "the backlog", func() bool { return r.metric(`baton_flush_backlog{job="views"}`) == "5" })
	_ = r.end()
}

func TestPreviewShowsWhatARunWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@yearly")
	l.job("clicks", "@yearly")
	l.config.Jobs[1].Flush.To = config.To{Database: "main", Table: "made", Key: []string{"id"}, Schema: "create"}
	l.config.Jobs[1].Flush.Columns["id"] = config.Column{From: "$field", Type: "text"}
	l.config = l.config.WithDefaults()
	l.do("HSET", "views", "7", 10, "no number", 1)
	l.do("HSET", "clicks", "front page", 3)

	p, err := direct.PreviewJob(t.Context(), l.config, "views", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rows) != 2 || len(p.Columns) != 2 || *p.Shards[0].Backlog != 2 || p.Columns[1].Op != "add" {
		t.Errorf("%+v", p)
	}
	if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "no number") {
		t.Errorf("problems: %q", p.Problems)
	}
	p, err = direct.PreviewJob(t.Context(), l.config, "clicks", 10)
	if err != nil || len(p.Problems) != 0 || !strings.HasPrefix(p.DDL, "CREATE TABLE IF NOT EXISTS \"made\"") || len(p.Rows) != 1 || *p.Rows[0].Values[1] != "3" {
		t.Errorf("of a table that is missing: %+v, %v", p, err)
	}
	tables := l.db.Rows(t, "SELECT name FROM sqlite_master WHERE type = 'table'")
	keys, err := redis.Strings(l.conn.Do("KEYS", "*"))
	if fmt.Sprint(tables) != "[[articles]]" || len(keys) != 2 || err != nil {
		t.Errorf("something was touched: tables %v, keys %v, %v", tables, keys, err)
	}
	l.config.Jobs[1].Flush.To.Schema = "verify"
	p, err = direct.PreviewJob(t.Context(), l.config, "clicks", 10)
	if err != nil || len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "no such table") || *p.Shards[0].Backlog != 1 {
		t.Errorf("without a table: %+v, %v", p, err)
	}
	if _, err := direct.PreviewJob(t.Context(), l.config, "cliks", 10); !errors.Is(err, operate.ErrNoJob) {
		t.Errorf("an unknown job: %v", err)
	}
}

func TestFirstRunMakesTheTableThatIsMissing(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("clicks", "@always")
	l.config.Jobs[0].Flush.To = config.To{Database: "main", Table: "made", Key: []string{"id"}, Schema: "create"}
	l.config.Jobs[0].Flush.Columns["id"] = config.Column{From: "$field", Type: "text"}
	r := l.start()
	l.do("HINCRBY", "clicks", "front page", 3)
	await(t, "the row", func() bool {
		got, err := l.db.Query(t.Context(), "SELECT id, views FROM made")
		return err == nil && fmt.Sprint(got) == "[[front page 3]]"
	})
	_ = r.end()
}

func TestJobIsPausedAtAGapInItsStream(t *testing.T) {
	l := newJobLab(t)
	l.config.Jobs = []config.Job{{Name: "views", Schedule: "@always", Flush: config.Flush{
		From:    config.From{Type: spec.Stream, Key: "views"},
		To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
		Columns: map[string]config.Column{"id": {From: "id"}, "views": {From: "views"}},
	}}}
	r := l.start()
	l.do("XADD", "views", "*", "id", 1, "views", 5)
	l.awaitRows("[[1 5]]")
	l.do("MULTI")
	l.do("XADD", "views", "*", "id", 2, "views", 6)
	l.do("XADD", "views", "*", "id", 3, "views", 7)
	l.do("XTRIM", "views", "MAXLEN", 1)
	l.do("EXEC")
	await(t, "the pause", func() bool { return l.state("views").Paused != nil })
	if why := l.state("views").Paused.Reason; !strings.HasPrefix(why, "by baton: ") || !strings.Contains(why, "gap") {
		t.Errorf("reason: %q", why)
	}
	l.awaitRows("[[1 5]]")
	_ = r.end()
}
