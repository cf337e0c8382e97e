package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

// scrape returns baton's series in /metrics with their values.
func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	rec := statustest.Get(m.Handler(zap.NewNop()), "/metrics")
	if rec.Code != 200 {
		t.Fatalf("/metrics: %d %s", rec.Code, rec.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "baton_") {
			name, value, _ := cutLast(strings.TrimSpace(line), " ")
			series[name] = value
		}
	}
	return series
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func wantSeries(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestEverySeriesIsThereAtZero(t *testing.T) {
	m := New("1.2.3", []string{"a", "b", "command"})
	m.AddFlushes("a", "b")
	m.Election("baton")
	m.AddTargets("ops")
	got := scrape(t, m)
	for name, value := range got {
		if !strings.HasPrefix(name, "baton_build_info") && name != "baton_config_last_reload_successful" &&
			!strings.HasPrefix(name, "baton_redis_up") && !strings.HasPrefix(name, "baton_job_known_age") && value != "0" {
			t.Errorf("%s starts at %s", name, value)
		}
	}
	want := []string{
		`baton_leader{lock="baton"}`, `baton_epoch{lock="baton"}`, `baton_leader_transitions_total{lock="baton",reason="stepped_down"}`,
		`baton_lease_remaining_seconds{lock="baton"}`, `baton_lease_remaining_low_seconds{lock="baton"}`,
		`baton_renew_seconds_count{lock="baton"}`,
		`baton_renew_outcomes_total{lock="baton",outcome="unknown"}`, `baton_config_last_reload_successful`,
		`baton_job_runs_total{job="b",result="timed_out",trigger="catch_up"}`, `baton_job_missed_total{job="a",reason="no_leader"}`,
		`baton_job_duration_seconds_count{job="a"}`, `baton_job_start_delay_seconds_count{job="b"}`,
		`baton_job_next_run_timestamp_seconds{job="a"}`, `baton_job_last_success_timestamp_seconds{job="a"}`,
		`baton_flush_rows_total{job="a",outcome="dead"}`, `baton_flush_batch_seconds_count{job="a"}`,
		`baton_flush_lag_seconds{job="a"}`, `baton_flush_backlog{job="b"}`, `baton_flush_fenced_total{job="b"}`,
		`baton_notifications_total{outcome="given_up",target="ops"}`, `baton_job_known_age_seconds{job="a"}`,
	}
	for _, name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	runs := 0
	for name := range got {
		if strings.HasPrefix(name, "baton_job_runs_total") {
			runs++
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "baton_flush") && strings.Contains(name, `job="command"`) {
			t.Errorf("a job that never flushes has %s", name)
		}
	}
	if want := 3 * len(jobTriggers()) * len(jobResults()); runs != want {
		t.Errorf("%d series of runs, want %d", runs, want)
	}
}

func TestMetricsSayWhatHappened(t *testing.T) {
	m := New("1.2.3", []string{"a"})
	m.AddFlushes("a")
	at := time.UnixMilli(1_753_192_331_500)
	e := m.Election("baton")
	e.Won(41)
	e.Epoch(42)
	e.Transition("quarantined")
	e.Renewal("renewed", 3*time.Millisecond)
	e.Renewal("unknown", time.Second)
	m.JobStarted("a", 200*time.Millisecond)
	m.JobFinished("a", "schedule", "succeeded", at, 2*time.Second)
	m.JobFinished("a", "retry", "failed", at.Add(time.Hour), time.Second)
	m.JobMissed("a", "overlap", 3)
	m.Verified("a", at, map[string]int64{"compared": 1000, "extra": 2})
	m.Verified("b", at, map[string]int64{"extra": 2}) // there is no flush with this name
	m.JobNext("a", at)
	m.FlushRows("a", "written", 500)
	m.FlushRows("a", "deleted", 20)
	m.FlushRows("a", "dead", 2)
	m.FlushBatch("a", 30*time.Millisecond)
	m.FlushBehind("a", 77, 1500*time.Millisecond)
	m.FlushFenced("a")
	m.Notified("ops", "dropped", 3)
	now := time.Now()
	m.JobStands(diagnose.Job{Name: "a", ConsecutiveFailures: 3,
		Paused: &diagnose.Pause{Since: now.Add(-59 * time.Minute)}, DueAt: now.Add(-time.Hour)}, now)
	m.JobLateAfter("a", time.Hour)
	m.JobLateAfter("gone", time.Hour)
	e.Sees(Surroundings{Live: 3, Silent: 1, Drifted: 2, Paused: true, Offset: -1500 * time.Millisecond})
	e.Redis(false)
	led := map[string]string{
		`baton_job_consecutive_failures{job="a"}`: "3", `baton_job_paused{job="a"}`: "1", `baton_job_overdue_seconds{job="a"}`: "60",
		`baton_job_late_after_seconds{job="a"}`: "3600", `baton_job_late_after_seconds{job="gone"}`: "",
		`baton_nodes{lock="baton",state="live"}`: "3", `baton_nodes{lock="baton",state="silent"}`: "1",
		`baton_nodes_drifted{lock="baton"}`:   "2",
		`baton_election_paused{lock="baton"}`: "1", `baton_clock_offset_seconds{lock="baton"}`: "-1.5", `baton_redis_up{lock="baton"}`: "0",
		`baton_leader{lock="baton"}`: "1", `baton_epoch{lock="baton"}`: "42",
		`baton_leader_transitions_total{lock="baton",reason="won"}`:         "1",
		`baton_leader_transitions_total{lock="baton",reason="quarantined"}`: "1",
		`baton_renew_seconds_count{lock="baton"}`:                           "2", `baton_renew_seconds_sum{lock="baton"}`: "1.003",
		`baton_renew_outcomes_total{lock="baton",outcome="renewed"}`:          "1",
		`baton_renew_outcomes_total{lock="baton",outcome="unknown"}`:          "1",
		`baton_job_runs_total{job="a",result="succeeded",trigger="schedule"}`: "1",
		`baton_job_runs_total{job="a",result="failed",trigger="retry"}`:       "1",
		`baton_job_duration_seconds_sum{job="a"}`:                             "3", `baton_job_start_delay_seconds_sum{job="a"}`: "0.2",
		`baton_job_missed_total{job="a",reason="overlap"}`: "3", `baton_job_next_run_timestamp_seconds{job="a"}`: "1.7531923315e+09",
		`baton_job_last_success_timestamp_seconds{job="a"}`: "1.7531923315e+09", `baton_flush_rows_total{job="a",outcome="written"}`: "500",
		`baton_flush_rows_total{job="a",outcome="deleted"}`: "20",
		`baton_flush_rows_total{job="a",outcome="dead"}`:    "2", `baton_flush_batch_seconds_count{job="a"}`: "1",
		`baton_flush_lag_seconds{job="a"}`: "1.5", `baton_flush_backlog{job="a"}`: "77", `baton_flush_fenced_total{job="a"}`: "1",
		`baton_notifications_total{outcome="dropped",target="ops"}`: "3",
		`baton_verify_rows{job="a",result="compared"}`:              "1000", `baton_verify_rows{job="a",result="extra"}`: "2",
		`baton_verify_rows{job="a",result="missing"}`: "0", `baton_verify_rows{job="b",result="extra"}`: "",
		`baton_verify_timestamp_seconds{job="a"}`: "1.7531923315e+09",
	}
	wantSeries(t, scrape(t, m), led)

	e.Ended("lost", "a")
	wantSeries(t, scrape(t, m), map[string]string{
		`baton_leader{lock="baton"}`: "0", `baton_epoch{lock="baton"}`: "42",
		`baton_leader_transitions_total{lock="baton",reason="lost"}`: "1",
		// The state of the jobs stays, because there may be no leader now, and no other node that knows the state.
		`baton_flush_lag_seconds{job="a"}`: "1.5", `baton_flush_backlog{job="a"}`: "77",
		`baton_job_next_run_timestamp_seconds{job="a"}`: "0",
		`baton_job_consecutive_failures{job="a"}`:       "3", `baton_job_paused{job="a"}`: "1",
		`baton_job_overdue_seconds{job="a"}`: "60", `baton_job_late_after_seconds{job="a"}`: "3600",
		`baton_flush_rows_total{job="a",outcome="written"}`: "500", `baton_job_last_success_timestamp_seconds{job="a"}`: "1.7531923315e+09",
	})
}

func TestWhatIsKnownOfAJobAgesWhileNobodyCanBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("v", []string{"late", "soon", "runs", "paused", "new"})
		m.AddFlushes("late", "soon")
		now := time.Now()
		m.JobStands(diagnose.Job{Name: "late", LateAfterSeconds: 90, ConsecutiveFailures: 4, DueAt: now.Add(-time.Minute)}, now)
		m.FlushBehind("late", 77, 2*time.Minute)
		m.JobStands(diagnose.Job{Name: "soon", DueAt: now.Add(30 * time.Second),
			Unscheduled: &diagnose.Unscheduled{Leader: "b", LateFrom: now.Add(time.Hour)}}, now)
		m.FlushBehind("soon", 0, 0)
		m.JobStands(diagnose.Job{Name: "runs", DueAt: now.Add(-time.Minute), Awaited: true}, now)
		m.JobStands(diagnose.Job{Name: "paused", Paused: &diagnose.Pause{Since: now}, DueAt: now.Add(-time.Minute)}, now)
		wantSeries(t, scrape(t, m), map[string]string{
			`baton_job_overdue_seconds{job="late"}`: "60", `baton_flush_lag_seconds{job="late"}`: "120",
			`baton_job_overdue_seconds{job="soon"}`: "0",
			`baton_job_unscheduled{job="soon"}`:     "1", `baton_job_unscheduled{job="late"}`: "0",
			`baton_job_overdue_seconds{job="runs"}`: "0", `baton_job_overdue_seconds{job="paused"}`: "60",
			`baton_job_late{job="late"}`: "0", `baton_job_late{job="new"}`: "0",
			`baton_job_known_age_seconds{job="late"}`: "0", `baton_job_known_age_seconds{job="new"}`: "+Inf",
		})
		time.Sleep(5 * time.Minute)
		wantSeries(t, scrape(t, m), map[string]string{
			`baton_job_overdue_seconds{job="late"}`: "360", `baton_flush_lag_seconds{job="late"}`: "420",
			`baton_flush_backlog{job="late"}`:            "77",
			`baton_job_consecutive_failures{job="late"}`: "4", `baton_job_overdue_seconds{job="soon"}`: "270",
			`baton_flush_lag_seconds{job="soon"}`: "0",
			`baton_job_late{job="late"}`:          "1", `baton_job_late{job="soon"}`: "1", `baton_job_late{job="paused"}`: "0",
			`baton_job_late{job="new"}`: "0",
			// The node that ran the job has not reported for minutes.
			`baton_job_overdue_seconds{job="runs"}`: "360", `baton_job_overdue_seconds{job="paused"}`: "60",
			`baton_job_known_age_seconds{job="late"}`: "300", `baton_job_known_age_seconds{job="new"}`: "+Inf",
		})
	})
}

func TestLowWaterOfTheLeaseIsKeptAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("v", nil).Election("baton")
		deadline := time.Now().Add(8 * time.Second)
		m.Lease(func() time.Duration { return time.Until(deadline) })
		renew := func() {
			m.Renewal("renewed", time.Millisecond)
			deadline = time.Now().Add(8 * time.Second)
		}
		remaining := func(now, low string) {
			t.Helper()
			wantSeries(t, scrape(t, m.metrics), map[string]string{`baton_lease_remaining_seconds{lock="baton"}`: now,
				`baton_lease_remaining_low_seconds{lock="baton"}`: low})
		}
		remaining("8", "8")
		time.Sleep(2 * time.Second)
		remaining("6", "6")
		renew()
		time.Sleep(7 * time.Second) // Redis did not answer for a moment between two scrapes
		renew()
		remaining("8", "1")
		for range 151 { // five minutes without a problem
			time.Sleep(2 * time.Second)
			renew()
		}
		remaining("8", "1")
		for range 151 {
			time.Sleep(2 * time.Second)
			renew()
		}
		remaining("8", "6")
		time.Sleep(time.Minute)
		remaining("0", "0")
		deadline = time.Now().Add(5 * time.Second)
		m.Ended("expired")
		remaining("0", "0")
		m.Lease(func() time.Duration { return time.Until(deadline) })
		remaining("5", "5")
	})
}

func TestMetricsMayBeToldFromEverywhereAtOnce(t *testing.T) {
	m := New("v", []string{"a"})
	m.AddFlushes("a")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				e := m.Election("baton")
				e.Won(1)
				e.Lease(func() time.Duration { return time.Second })
				e.Renewal("renewed", time.Millisecond)
				m.AddJobs("b", "c")
				m.AddFlushes("b")
				m.FlushBehind("a", 1, time.Second)
				e.Ended("lost", "a")
			}
		})
		all.Go(func() {
			for range 10 {
				scrape(t, m)
			}
		})
	}
	all.Wait()
}

// TestEveryMetricIsDocumented compares docs/reference/metrics.md with the registered metrics in both directions: name, type, labels and the
// label values that are registered with the value zero.
func TestEveryMetricIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(baton_[a-z_]+)` (.*)$").FindAllStringSubmatch(string(doc), -1) {
		rows[row[1]] = row[2]
	}
	m := New("v", []string{"a"})
	m.AddFlushes("a")
	m.AddComparable("a")
	m.AddCaptures(captureCodes(), "a")
	m.CaptureProgress("a", false, 0, 0, []CaptureMaster{{Address: "r:6379"}})
	m.Election("baton")
	m.AddTargets("ops")
	m.StoreUp("shop", true)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for i, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "baton_") {
			continue
		}
		row, ok := rows[name]
		delete(rows, name)
		if !ok {
			t.Errorf("%s is not in docs/reference/metrics.md", name)
			continue
		}
		if kind := strings.ToLower(family.GetType().String()); !strings.HasPrefix(row, "| "+kind+" |") {
			t.Errorf("docs/reference/metrics.md does not call %s a %s: %s", name, kind, row)
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if !strings.Contains(row, "`"+label.GetName()+"`") {
					t.Errorf("docs/reference/metrics.md lacks the label %s of %s", label.GetName(), name)
				}
				free := slices.Contains([]string{"job", "lock", "target", "store", "master"}, label.GetName()) || name == "baton_build_info"
				if !free && !strings.Contains(row, "`"+label.GetValue()+"`") {
					t.Errorf("docs/reference/metrics.md lacks %s=%q of %s", label.GetName(), label.GetValue(), name)
				}
			}
		}
		problems, err := promlint.NewWithMetricFamilies(families[i : i+1]).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", name, problems, err)
		}
	}
	for name := range rows {
		t.Errorf("docs/reference/metrics.md describes %s, which there is not", name)
	}
}

func TestAnElectionThatIsLeftHasNoMetrics(t *testing.T) {
	m := New("v", nil)
	for range 2 { // the second time checks that the election can be joined again
		m.Election("reports").Won(7)
		wantSeries(t, scrape(t, m), map[string]string{`baton_leader{lock="reports"}`: "1"})
		m.Election("reports").Forget()
		for name := range scrape(t, m) {
			if strings.Contains(name, "reports") {
				t.Errorf("still there: %s", name)
			}
		}
	}
}

func TestAJobThatIsNoMoreHasNoPresent(t *testing.T) {
	m := New("v", []string{"gone", "kept"})
	m.AddFlushes("gone")
	m.JobNext("gone", time.Unix(1, 0))
	m.JobMissed("gone", "late", 2)
	m.ForgetJobs("gone")
	m.FlushBehind("gone", 1, time.Second) // the last run of the job ends after the job was removed
	got := scrape(t, m)
	for _, name := range []string{"job_next_run_timestamp_seconds", "job_last_success_timestamp_seconds",
		"flush_lag_seconds", "flush_backlog"} {
		if v, ok := got[`baton_`+name+`{job="gone"}`]; ok {
			t.Errorf("%s is %s", name, v)
		}
	}
	wantSeries(t, got, map[string]string{
		`baton_job_missed_total{job="gone",reason="late"}`: "2", `baton_job_next_run_timestamp_seconds{job="kept"}`: "0",
	})
	m.AddJobs("gone")
	m.AddFlushes("gone")
	wantSeries(t, scrape(t, m), map[string]string{`baton_flush_lag_seconds{job="gone"}`: "0"})
}

func TestStoresAreShownUntilTheyAreNoMore(t *testing.T) {
	m := New("v", nil)
	m.StoreUp("shop", true)
	m.StoreUp("branch", true)
	m.StoreUp("shop", false)
	wantSeries(t, scrape(t, m), map[string]string{`baton_store_up{store="shop"}`: "0", `baton_store_up{store="branch"}`: "1"})
	m.ForgetStores("shop")
	if _, there := scrape(t, m)[`baton_store_up{store="shop"}`]; there {
		t.Error("a store that is no more is still shown")
	}
}

func TestABacklogThatIsNotKnownHasNoGauge(t *testing.T) {
	m := New("1", []string{"a"})
	m.AddFlushes("a")
	m.JobStands(diagnose.Job{Name: "a"}, time.Now())
	m.FlushUncounted("a")
	got := scrape(t, m)
	for _, name := range []string{`baton_flush_backlog{job="a"}`, `baton_flush_lag_seconds{job="a"}`} {
		if value, there := got[name]; there {
			t.Errorf("%s is %s", name, value)
		}
	}
	if got[`baton_job_known_age_seconds{job="a"}`] == "+Inf" {
		t.Error("the node is taken to know nothing of the job")
	}
	m.FlushBehind("a", 3, time.Second)
	wantSeries(t, scrape(t, m), map[string]string{`baton_flush_backlog{job="a"}`: "3", `baton_flush_lag_seconds{job="a"}`: "1"})
}
