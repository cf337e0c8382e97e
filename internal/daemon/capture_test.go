package daemon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/flush"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/verify"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/testsupport"
)

// captureLab returns a lab with two jobs that follow a store.
func captureLab(t *testing.T) (*jobLab, testsupport.Client, string) {
	t.Helper()
	l := newJobLab(t)
	shop := testsupport.StartRedis(t)
	l.config.Stores = map[string]config.Store{"shop": {URL: shop.URL()}}
	for _, name := range []string{"articles", "others"} {
		l.config.Jobs = append(l.config.Jobs, config.Job{Name: name, Schedule: "@always", Flush: config.Flush{
			From:    config.From{Type: spec.Capture, Store: "shop", Key: name + ":<id>", Value: "string"},
			To:      config.To{Database: "main", Table: name, Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "id"}, "views": {From: "$value"}},
		}})
	}
	l.db.Exec(t, "CREATE TABLE others (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	return l, shop.Client(t), shop.Addr()
}

// told returns the events of captures as "event code", the oldest first.
func (l *jobLab) told() (all []string) {
	l.t.Helper()
	events, err := l.remote.to.Events(l.t.Context(), 50)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		if strings.HasPrefix(e.Event, "stream_") || strings.HasPrefix(e.Event, "pass_") {
			all = append(all, e.Event+" "+e.Code)
		}
	}
	return all
}

func TestATakeoverGoesOnInTheStreamAndSaysSo(t *testing.T) {
	t.Parallel()
	l, shop, address := captureLab(t)
	shop.Do("SET", "articles:1", 10)
	r := l.start()
	l.awaitRows("[[1 10]]")
	await(t, "the end of the pass in the events", func() bool {
		return slices.Equal(l.told(), strings.Split("stream_joined began,pass_began new,pass_ended complete", ","))
	})
	for name, want := range map[string]string{
		`baton_capture_passes_total{job="articles",reason="new"}`: "1", `baton_capture_joins_total{how="began",job="others"}`: "1",
		`baton_capture_passes_ended_total{job="others",result="complete"}`: "1",
	} {
		await(t, name, func() bool { return r.metric(name) == want })
	}
	await(t, "the master's metrics", func() bool {
		return r.metric(fmt.Sprintf(`baton_capture_lag_bytes{job="articles",master=%q}`, address)) == "0" &&
			r.metric(`baton_capture_pass_owed{job="articles"}`) == "0" &&
			r.metric(`baton_capture_pending_budget_bytes{job="articles"}`) != "0"
	})
	// The command line follows no stream, so it shows the leader's count.
	await(t, "the leader's count", func() bool { j := l.state("articles"); return j.Backlog != nil && *j.Backlog == 0 })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	shop.Do("SET", "articles:1", 11)
	second := l.start()
	l.awaitRows("[[1 11]]")
	await(t, "+CONTINUE", func() bool {
		return second.metric(`baton_capture_joins_total{how="continued",job="articles"}`) == "1" &&
			second.metric(`baton_capture_joins_total{how="continued",job="others"}`) == "1"
	})
	await(t, "its event", func() bool { return slices.Contains(l.told(), "stream_joined continued") })
	for name := range strings.SplitSeq(second.read("/metrics"), "\n") {
		if strings.HasPrefix(name, "baton_capture_passes_total") && !strings.HasSuffix(name, " 0") {
			t.Errorf("the second leader reads all keys: %s", name)
		}
	}
	if page := second.read("/"); !strings.Contains(page, "stream joined") || !strings.Contains(page, "went on where it was left") {
		t.Error("the page does not say so")
	}
}

// A deletion is reported in the run, the history, the metric and the log. Before, none of them reported it.
func TestDeletedRowsAreCountedAndTheFirstIsLogged(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	l.config.Jobs[1].Schedule = "@every 1s" // runs with this schedule end
	for id := range 3 {
		shop.Do("SET", fmt.Sprint("articles:", id), id)
		shop.Do("SET", fmt.Sprint("others:", id), id)
	}
	r := l.start()
	l.awaitRows("[[0 0] [1 1] [2 2]]")
	await(t, "the rows of the other job", func() bool { return fmt.Sprint(l.db.Rows(t, "SELECT count(*) FROM others")) == "[[3]]" })
	shop.Do("DEL", "articles:1", "articles:2", "others:0", "others:1")
	l.awaitRows("[[0 0]]")
	await(t, "the metrics", func() bool {
		return r.metric(`baton_flush_rows_total{job="articles",outcome="deleted"}`) == "2" &&
			r.metric(`baton_flush_rows_total{job="others",outcome="deleted"}`) == "2"
	})
	await(t, "the run in the history", func() bool {
		return slices.ContainsFunc(l.history("others"), func(e operate.Entry) bool { return e.Run != nil && e.Run.Deleted == 2 })
	})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the run that went on", func() bool {
		last := l.state("articles").LastRun
		return last != nil && last.Deleted == 2
	})
	if n := r.logs.FilterMessageSnippet("the first rows of the table were deleted").Len(); n != 2 {
		t.Errorf("the log has it %d times, want once a table", n)
	}
}

// The preview says what a first run would do to a table that existed before.
func TestAPreviewOfEverythingCountsWhatAPassWouldDo(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	l.config = l.config.WithDefaults()
	plan := func(want direct.Plan) direct.Plan {
		t.Helper()
		p, err := direct.PlanJob(t.Context(), l.config, "articles", direct.PlanOptions{Examples: 1, Rate: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		if got := [...]int64{p.Insert, p.Change, p.Delete, p.Unfit, p.Records, p.Rows}; p.Stops != want.Stops ||
			got != [...]int64{want.Insert, want.Change, want.Delete, want.Unfit, want.Records, want.Rows} {
			t.Errorf("%+v", p)
		}
		return p
	}
	for id := range 20 {
		l.db.Exec(t, fmt.Sprintf("INSERT INTO articles VALUES (%d, %d)", id, id))
		shop.Do("SET", fmt.Sprint("articles:", id), id)
	}
	plan(direct.Plan{Records: 20, Rows: 20})
	shop.Do("SET", "articles:3", 33)
	shop.Do("SET", "articles:100", 1)
	shop.Do("SET", "articles:101", "no number")
	shop.Do("DEL", "articles:4")
	p := plan(direct.Plan{Insert: 1, Change: 1, Delete: 1, Unfit: 1, Records: 21, Rows: 20})
	kinds := map[verify.Kind]string{}
	for _, e := range p.Examples {
		kinds[e.Kind] = e.Key
	}
	if want := map[verify.Kind]string{verify.Missing: "articles:100", verify.Different: "articles:3", verify.Extra: "articles:4",
		verify.Unfit: "articles:101"}; !maps.Equal(kinds, want) {
		t.Errorf("examples: %v", kinds)
	}
	shop.Do("FLUSHALL")
	plan(direct.Plan{Delete: 20, Rows: 20, Stops: true})
	if rows := fmt.Sprint(l.db.Rows(t, "SELECT count(*), sum(views) FROM articles")); rows != "[[20 190]]" {
		t.Errorf("the table was touched: %s", rows)
	}
	if tables := fmt.Sprint(l.db.Rows(t, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'baton%'")); tables != "[[0]]" {
		t.Errorf("baton has made %s tables", tables)
	}
	l.config.Jobs[0].Flush.To.Table = "missing"
	if _, err := direct.PlanJob(t.Context(), l.config, "articles", direct.PlanOptions{}); !errors.Is(err, flush.ErrNoTable) {
		t.Errorf("without a table: %v", err)
	}
	l.config.Jobs[0].Flush.To.Schema = "create"
	l.config.Jobs[0].Flush.Columns["views"] = config.Column{From: "$value", Type: "integer"}
	l.config.Jobs[0].Flush.Columns["id"] = config.Column{From: "id", Type: "integer"}
	made, err := direct.PlanJob(t.Context(), l.config, "articles", direct.PlanOptions{})
	if err != nil || len(made.Notes) != 1 || !strings.Contains(made.Notes[0], "there is no table yet") {
		t.Errorf("of a table that the job makes: %+v, %v", made, err)
	}
}

// A first run changed and deleted rows of a table that existed before. Now it waits until an operator accepts this, and reports that it
// waits.
func TestRowsThatWereThereWaitUntilTheyAreAccepted(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	l.config.Jobs[0].Flush.From.MaxPct = 50
	l.db.Exec(t, "INSERT INTO articles VALUES (1, 1), (2, 2), (3, 3)")
	shop.Do("MSET", "articles:1", 1, "articles:2", 22, "articles:4", 4)
	r := l.start()
	l.awaitRows("[[1 1] [2 2] [3 3] [4 4]]")
	await(t, "what waits in the status", func() bool { return l.state("articles").Unaccepted == 2 })
	await(t, "the metric", func() bool { return r.metric(`baton_flush_unaccepted_rows{job="articles"}`) == "2" })
	if n := r.logs.FilterMessageSnippet("would change 1 and delete 1 of them").Len(); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	await(t, "the page", func() bool { return strings.Contains(r.read("/"), "articles has left 2 rows of its table alone") })
	shop.Do("SET", "articles:2", 222)
	l.awaitRows("[[1 1] [2 222] [3 3] [4 4]]")
	if out, err := l.remote.accept(t.Context(), "others", "by ann"); err != nil || out.Code != operate.CodeNothing ||
		!strings.Contains(out.Text, "nothing waits to be accepted") {
		t.Errorf("another job: %+v, %v", out, err)
	}
	l.refusesMoreThanWasShown()
	out, err := l.remote.accept(t.Context(), "articles", "by ann: a copy")
	if a := out.Acceptance; err != nil || out.Code != operate.CodeDone || a.Changes != 1 || a.Deletes != 1 || a.By != "ann" {
		t.Fatalf("%+v, %v", out, err)
	}
	if e := l.event("rows_accepted"); e.Reason != "articles may change 1 row and delete 1 row of table articles, accepted by ann: a copy" {
		t.Errorf("the event history has %+v", e)
	}
	shop.Do("SET", "articles:1", 11) // the next run finds the acceptance
	l.awaitRows("[[1 11] [2 222] [4 4]]")
	await(t, "nothing waits", func() bool {
		return l.state("articles").Unaccepted == 0 && r.metric(`baton_flush_unaccepted_rows{job="articles"}`) == "0"
	})
	if adopted := fmt.Sprint(l.db.Rows(t, "SELECT job, position FROM baton_position WHERE shard LIKE '%adoption %' ORDER BY job")); adopted !=
		"[[articles adopted] [others adopted]]" {
		t.Errorf("recorded: %s", adopted)
	}
}

// refusesMoreThanWasShown fails the test if rows are accepted that the author of the order has not seen.
func (l *jobLab) refusesMoreThanWasShown() {
	l.t.Helper()
	for _, o := range []operate.Order{{}, {Changes: 1}, {Deletes: 5}} {
		o.Kind, o.Job = operate.KindAccept, "articles"
		if _, err := l.remote.to.Do(l.t.Context(), o); !errors.Is(err, operate.ErrRefused) ||
			!strings.Contains(err.Error(), "baton would now change 1 row and delete 1 row of table articles") {
			l.t.Errorf("%d and %d were shown: %v", o.Changes, o.Deletes, err)
		}
	}
	if a, err := l.remote.to.Acceptance(l.t.Context(), "articles"); err != nil || a.State != operate.RowsWait || a.By != "" {
		l.t.Errorf("after the refusals: %+v, %v", a, err)
	}
}

// event returns the newest event of this name in the event history.
func (l *jobLab) event(name string) diagnose.Event {
	l.t.Helper()
	events, err := l.remote.to.Events(l.t.Context(), 50)
	if err != nil {
		l.t.Fatal(err)
	}
	at := slices.IndexFunc(events, func(e diagnose.Event) bool { return e.Event == name })
	if at < 0 {
		l.t.Fatalf("no event %s in %+v", name, events)
	}
	return events[at]
}

// If the Redis user lacks the permission to follow, an operator must act: the job reports this at once and repeatedly, but asks Redis
// only once a minute.
func TestAStreamThatIsRefusedIsSaidAndHardlyAskedFor(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	shop.Do("ACL", "SETUSER", "default", "-psync")
	r := l.start()
	await(t, "two failed runs", func() bool { return l.state("articles").ConsecutiveFailures >= 2 })
	if e := l.state("articles").LastRun.Error; !strings.Contains(e, "+psync") || strings.Contains(e, "not done") {
		t.Errorf("the error: %s", e)
	}
	if j := l.state("articles"); j.Backlog != nil || j.LagSeconds != nil || !strings.Contains(j.BacklogUnknown, "+psync") {
		t.Errorf("backlog %v, lag %v, unknown %q", j.Backlog, j.LagSeconds, j.BacklogUnknown)
	}
	for _, gauge := range []string{"baton_flush_backlog", "baton_flush_lag_seconds"} {
		await(t, "no "+gauge, func() bool { return r.metric(gauge+`{job="articles"}`) == "" })
	}
	await(t, "the reason on the page", func() bool { return strings.Contains(r.read("/jobs/articles"), "unknown: <small>") })
	await(t, "the metric and the event", func() bool {
		return r.metric(`baton_capture_interruptions_total{job="articles",reason="refused"}`) != "0" &&
			slices.Contains(l.told(), "stream_refused refused")
	})
}
