package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// edge is what one cluster tells, hardly enough for an alert or not quite, and when the
// alert fires.
type edge struct {
	alert, name   string
	series        []string // metric{labels} values, a sample every 15 s
	fires, silent []string
}

// edges hold every alert to its threshold, its `for` and its window. What is wrong begins
// after two minutes; where one node tells of it the other one tells zero.
func edges() []edge {
	// on the node a from the third minute on, and not on b
	on := func(metric, before, after string) []string {
		return []string{fmt.Sprintf(`%s,instance="a"} %s+0x7 %s+0x900`, metric, before, after), metric + `,instance="b"} 0+0x900`}
	}
	both := slices.Concat[[]string]
	leads := on(`baton_leader{lock="l"`, "1", "1")
	lag := func(v string) []string { return on(`baton_flush_lag_seconds{job="j"`, "0", v) }
	overdue := func(v string) []string { return on(`baton_job_overdue_seconds{job="j"`, "0", v) }
	late := func(v string) []string { return on(`baton_job_late_after_seconds{job="j"`, v, v)[:1] }
	lease := func(left, low string) []string {
		return []string{`baton_lease_remaining_seconds{lock="l",instance="a"} 8+0x7 ` + left + `+0x900`, `baton_lease_remaining_low_seconds{lock="l",instance="a"} 7+0x7 ` + low + `+0x900`}
	}
	renewals := func(good, bad string) []string {
		return []string{`baton_renew_outcomes_total{lock="l",outcome="renewed",instance="a"} ` + good, `baton_renew_outcomes_total{lock="l",outcome="unknown",instance="a"} ` + bad,
			`baton_renew_outcomes_total{lock="l",outcome="renewed",instance="b"} 0+0x900`, `baton_renew_outcomes_total{lock="l",outcome="lost",instance="a"} 0+0x900`}
	}
	backlog := func(before, first, after, lag, batches string) []string {
		return []string{`baton_flush_backlog{job="j",instance="a"} ` + before + `+0x239 ` + first + " " + after + `+0x900`, `baton_flush_backlog{job="j",instance="b"} 0+0x900`,
			`baton_flush_lag_seconds{job="j",instance="a"} ` + lag + `+0x900`, `baton_flush_lag_seconds{job="j",instance="b"} 0+0x900`,
			`baton_flush_batch_seconds_count{job="j",instance="a"} ` + batches, `baton_flush_batch_seconds_count{job="j",instance="b"} 0+0x900`}
	}
	const often = `0+1x900`
	rarely := "0+0x79 1+0x79 2+0x79 3+0x79 4+0x79 5+0x79 6+0x79 7+0x400" // every 20 minutes
	missed := func(reason, values string) []string {
		return []string{`baton_job_missed_total{job="j",reason="` + reason + `",instance="a"} ` + values, `baton_job_missed_total{job="j",reason="` + reason + `",instance="b"} 0+0x900`}
	}
	const once = `0+0x7 1+0x900`
	runs := []string{`baton_job_runs_total{job="j",instance="a"} 0+1x900`, `baton_job_runs_total{job="j",instance="b"} 0+0x900`}
	notified := func(outcome string) []string {
		return []string{`baton_notifications_total{target="t",outcome="` + outcome + `",instance="a"} ` + once, `baton_notifications_total{target="t",outcome="` + outcome + `",instance="b"} 0+0x900`}
	}
	traced := func(outcome string) []string {
		return []string{`baton_trace_spans_total{outcome="` + outcome + `",instance="a"} ` + once, `baton_trace_spans_total{outcome="` + outcome + `",instance="b"} 0+0x900`}
	}
	at := func(times ...string) []string { return times }
	return []edge{
		{"BatonInstanceDown", "", []string{`up{job="baton",instance="a"} 1+0x7 0+0x900`}, at("4m"), at("3m30s")},
		{"BatonNoLeader", "", on(`baton_leader{lock="l"`, "1", "0"), at("3m"), at("2m30s")},
		{"BatonNoLeader", "one node knows of the pause", both(on(`baton_leader{lock="l"`, "1", "0"), on(`baton_election_paused{lock="l"`, "0", "1")), nil, at("3m", "10m")},
		{"BatonTwoLeaders", "", both(leads[:1], []string{`baton_leader{lock="l",instance="c"} 0+0x7 1+0x900`}), at("3m"), at("2m30s")},
		{"BatonLeadershipFlapping", "five changes", []string{`baton_epoch{lock="l",instance="a"} 41+0x7 42 42 43 43 44 44 45 45 46+0x900`, `baton_epoch{lock="l",instance="b"} 3+0x900`}, nil, at("5m", "20m")},
		{"BatonLeadershipFlapping", "six", []string{`baton_epoch{lock="l",instance="a"} 41+0x7 42 42 43 43 44 44 45 45 46 46 47+0x900`, `baton_epoch{lock="l",instance="b"} 3+0x900`}, at("5m", "31m"), at("3m", "33m")},
		{"BatonLeaseLow", "", both(leads, lease("4", "1.9")), at("3m", "11m"), at("2m30s", "13m")},
		{"BatonLeaseLow", "a little more is left", both(leads, lease("4", "2.1")), nil, at("3m", "6m")},
		{"BatonLeaseLow", "it leads no more", both(on(`baton_leader{lock="l"`, "1", "0"), lease("0", "0")), nil, at("3m", "6m")},
		{"BatonRenewalsFailing", "more than a fifth", renewals("0+79x900", "0+21x900"), at("10m"), nil},
		{"BatonRenewalsFailing", "less", renewals("0+81x900", "0+19x900"), nil, at("10m")},
		{"BatonRenewalsFailing", "it begins", renewals("0+4x900", "0+0x60 2+2x900"), at("20m"), at("19m30s")},
		{"BatonRedisDown", "", on(`baton_redis_up{lock="l"`, "1", "0")[:1], at("3m"), at("2m30s")},
		{"BatonStoreDown", "", on(`baton_store_up{store="s"`, "1", "0")[:1], at("3m"), at("2m30s")},
		{"BatonElectionPaused", "", on(`baton_election_paused{lock="l"`, "0", "1"), at("1h2m"), at("1h1m30s")},
		{"BatonNodeSilent", "", on(`baton_nodes{lock="l",state="silent"`, "0", "1"), at("7m"), at("6m30s")},
		{"BatonNoStandby", "", both(on(`baton_nodes{lock="l",state="live"`, "2", "1")), at("17m"), at("16m30s")},
		{"BatonNoStandby", "there never was one, but for some that are gone", both(on(`baton_nodes{lock="l",state="live"`, "1", "1"), on(`baton_nodes{lock="l",state="silent"`, "2", "2")), nil, at("30m")},
		{"BatonConfigDrift", "", on(`baton_nodes_drifted{lock="l"`, "0", "1"), at("32m"), at("31m30s")},
		{"BatonConfigReloadFailed", "", []string{`baton_config_last_reload_successful{instance="a"} 1+0x7 0+0x900`}, at("3m"), at("2m30s")},
		{"BatonClock", "", on(`baton_clock_offset_seconds{lock="l"`, "0", "2.1"), at("12m"), at("11m30s")},
		{"BatonClock", "a little less", on(`baton_clock_offset_seconds{lock="l"`, "0", "-1.9"), nil, at("20m")},
		{"BatonFlushLate", "", both(late("0"), lag("601"), overdue("601")), at("3m"), at("2m30s")},
		{"BatonFlushLate", "it lags a little less", both(late("0"), lag("599"), overdue("700")), nil, at("10m")},
		{"BatonFlushLate", "it is overdue a little less", both(late("0"), lag("700"), overdue("599")), nil, at("10m")},
		{"BatonFlushLate", "by its own late_after", both(late("30"), lag("31"), overdue("31")), at("3m"), nil},
		{"BatonFlushLate", "not yet by its own", both(late("900"), lag("899"), overdue("899")), nil, at("10m")},
		{"BatonBacklogGrowing", "", backlog("700", "1100", "1100", "61", rarely), at("1h40m30s", "1h55m"), at("1h39m", "2h2m")},
		{"BatonBacklogGrowing", "not quite as many", backlog("500", "990", "990+0x118 9000 1100", "61", often), nil, at("1h45m", "1h58m")},
		{"BatonBacklogGrowing", "not by half as many again", backlog("740", "1100", "1100+0x118 9000", "61", often), nil, at("1h45m", "1h58m")},
		{"BatonBacklogGrowing", "it lags a little less", backlog("700", "1100", "1100", "59", often), nil, at("1h45m")},
		{"BatonBacklogGrowing", "it wrote an hour ago", backlog("700", "1100", "1100", "61", "0+1x200 200+0x700"), nil, at("1h45m")},
		{"BatonDeadLetters", "", []string{`baton_flush_rows_total{job="j",outcome="dead",instance="a"} ` + once, `baton_flush_rows_total{job="j",outcome="dead",instance="b"} 0+0x900`}, at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonDeadLetters", "all was written", []string{`baton_flush_rows_total{job="j",outcome="written",instance="a"} ` + often}, nil, at("10m")},
		{"BatonTableDiffers", "", on(`baton_verify_rows{job="j",result="extra"`, "0", "1"), at("2m30s"), at("1m30s")},
		{"BatonTableDiffers", "all rows are the same", on(`baton_verify_rows{job="j",result="compared"`, "0", "900"), nil, at("10m")},
		{"BatonCaptureRefused", "", []string{`baton_capture_interruptions_total{job="j",reason="refused",instance="a"} ` + once}, at("2m30s", "16m"), at("1m30s", "18m")},
		{"BatonCaptureRefused", "the connection broke", []string{`baton_capture_interruptions_total{job="j",reason="connection",instance="a"} ` + often}, nil, at("10m")},
		{"BatonCapturePasses", "", []string{`baton_capture_passes_total{job="j",reason="backlog",instance="a"} 0+0x7 1 2 3 4+0x900`}, at("4m", "1h"), at("2m30s", "1h5m")},
		{"BatonCapturePasses", "three", []string{`baton_capture_passes_total{job="j",reason="backlog",instance="a"} 0+0x7 1 2 3+0x900`}, nil, at("4m", "10m")},
		{"BatonCapturePasses", "for a good reason", []string{`baton_capture_passes_total{job="j",reason="new",instance="a"} ` + often}, nil, at("10m")},
		{"BatonRowsUnaccepted", "", on(`baton_flush_unaccepted_rows{job="j"`, "0", "3"), at("18m"), at("16m30s")},
		{"BatonRowsUnaccepted", "none", on(`baton_flush_unaccepted_rows{job="j"`, "0", "0"), nil, at("18m")},
		{"BatonCaptureBacklog", "", on(`baton_capture_backlog_used_ratio{job="j",master="m"`, "0", "0.51"), at("8m"), at("6m30s")},
		{"BatonCaptureBacklog", "half", on(`baton_capture_backlog_used_ratio{job="j",master="m"`, "0", "0.5"), nil, at("20m")},
		{"BatonFenced", "", []string{`baton_flush_fenced_total{job="j",instance="a"} ` + once, `baton_flush_fenced_total{job="j",instance="b"} 0+0x900`}, at("2m30s", "16m"), at("1m30s", "18m")},
		{"BatonJobFailing", "", on(`baton_job_consecutive_failures{job="j"`, "0", "3"), at("4m"), at("3m30s")},
		{"BatonJobFailing", "twice", on(`baton_job_consecutive_failures{job="j"`, "0", "2"), nil, at("10m")},
		{"BatonJobFailed", "", on(`baton_job_consecutive_failures{job="j"`, "0", "1"), at("32m"), at("31m30s")},
		{"BatonJobOverdue", "", both(late("0"), overdue("3601")), at("3m"), at("2m30s")},
		{"BatonJobOverdue", "a little less", both(late("0"), overdue("3599")), nil, at("10m")},
		{"BatonJobOverdue", "not yet by its own late_after", both(late("7200"), overdue("7199")), nil, at("10m")},
		{"BatonJobOverdue", "by its own late_after", both(late("30"), overdue("31")), at("3m"), nil},
		{"BatonJobNotScheduled", "", on(`baton_job_unscheduled{job="j"`, "0", "1"), at("12m"), at("11m30s")},
		{"BatonJobMissed", "", both(missed("late", once), overdue("61")), at("7m30s", "31m"), at("6m30s", "33m")},
		{"BatonJobMissed", "not overdue yet", both(missed("late", once), overdue("59")), nil, at("10m", "20m")},
		{"BatonJobMissed", "since it was paused", both(missed("paused", once), overdue("61")), nil, at("10m", "20m")},
		{"BatonJobMissed", "none", both(missed("late", "0+0x900"), overdue("61")), nil, at("10m", "20m")},
		{"BatonJobOverrun", "", both(missed("overlap", "0+0x239 0+2x260 522+0x400"), runs), at("2h1m", "2h30m"), at("1h58m", "2h40m")},
		{"BatonJobOverrun", "by concurrency", both(missed("concurrency", "0+11x900"), runs), at("1h"), nil},
		{"BatonJobOverrun", "fewer than are run", both(missed("overlap", "0+9x900"), []string{`baton_job_runs_total{job="j",instance="a"} 0+10x900`}), nil, at("1h")},
		{"BatonJobOverrun", "missed for another reason", both(missed("late", "0+11x900"), runs), nil, at("1h")},
		{"BatonNotificationsFailing", "refused", notified("refused"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonNotificationsFailing", "given up", notified("given_up"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonNotificationsFailing", "dropped", notified("dropped"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonNotificationsFailing", "delivered", notified("delivered"), nil, at("10m")},
		{"BatonTracesLost", "refused", traced("refused"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonTracesLost", "given up", traced("given_up"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonTracesLost", "dropped", traced("dropped"), at("2m30s", "1h1m"), at("1m30s", "1h3m")},
		{"BatonTracesLost", "delivered", traced("delivered"), nil, at("10m")},
		{"BatonScrapeLabels", "", []string{`baton_job_overdue_seconds{job="baton",exported_job="j",instance="a"} 0+0x900`}, at("5m"), at("4m30s")},
	}
}

// latest is the last moment that an edge looks at.
func (e edge) latest(t *testing.T) time.Duration {
	t.Helper()
	var last time.Duration
	for _, at := range append(slices.Clone(e.fires), e.silent...) {
		d, err := time.ParseDuration(at)
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, d)
	}
	return last
}

// All edges are few tests of promtool's, each edge a cluster: it is quick, and none sees another.
// Those of a test end at about the same time: promtool works through all of it.
func TestAlertsFireJustWhereTheySay(t *testing.T) {
	t.Parallel()
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ends := []time.Duration{15 * time.Minute, 40 * time.Minute, 70 * time.Minute, 3 * time.Hour}
	series, asked := make([]strings.Builder, len(ends)), make([]strings.Builder, len(ends))
	tried := map[string]bool{"BatonAbsent": true, "BatonJobPaused": true, "BatonDeadLettersWaiting": true} // one is about all clusters, two take six hours: baton.rules_test.yml has them
	for i, e := range edges() {
		tried[e.alert] = true
		n := slices.IndexFunc(ends, func(end time.Duration) bool { return e.latest(t) <= end })
		for _, s := range e.series {
			name, values, _ := strings.Cut(s, "} ")
			fmt.Fprintf(&series[n], "  - {series: %s, values: %s}\n", quoted(fmt.Sprintf(`%s,cluster="%d %s"}`, name, i, e.name)), quoted(values))
		}
		query := fmt.Sprintf(`count by (alertname, cluster) (ALERTS{alertstate="firing",alertname="%s",cluster="%d %s"})`, e.alert, i, e.name)
		for _, at := range e.silent {
			fmt.Fprintf(&asked[n], "  - {expr: %s, eval_time: %s, exp_samples: []}\n", quoted(query), at)
		}
		for _, at := range e.fires {
			fmt.Fprintf(&asked[n], "  - {expr: %s, eval_time: %s, exp_samples: [{labels: %s, value: 1}]}\n", quoted(query), at,
				quoted(fmt.Sprintf(`{alertname="%s",cluster="%d %s"}`, e.alert, i, e.name)))
		}
	}
	path, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	file := "rule_files: [" + path + "]\nevaluation_interval: 30s\ntests:\n"
	for n := range ends {
		file += "- interval: 15s\n  input_series:\n" + series[n].String() + "  promql_expr_test:\n" + asked[n].String()
	}
	promtool(t, nil, "test", "rules", write(t, "edges.yml", file))
	for _, r := range rules(t) {
		if r.Alert != "" && !tried[r.Alert] {
			t.Errorf("nothing holds %s to its threshold", r.Alert)
		}
	}
}

// Who is woken in the night is decided here, not by chance.
func TestFewAlertsWakeSomebody(t *testing.T) {
	want := map[string]string{"BatonAbsent": "critical", "BatonNoLeader": "critical", "BatonTwoLeaders": "critical", "BatonJobOverdue": "critical",
		"BatonFenced": "info", "BatonTracesLost": "info"}
	got := map[string]string{}
	for _, r := range rules(t) {
		if r.Alert != "" && r.Labels["severity"] != "warning" {
			got[r.Alert] = r.Labels["severity"]
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("other than warnings are %v, want %v", got, want)
	}
}
