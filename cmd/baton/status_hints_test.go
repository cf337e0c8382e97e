package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/jobcmd"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/doctor"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

func TestStatusTellsOfTwinsAndWrongClocks(t *testing.T) {
	var b strings.Builder
	s := diagnose.Snapshot{LockKey: "baton", Leader: &diagnose.Leader{NodeID: "db1"}, Nodes: []diagnose.Node{
		{ID: "db1", State: "leading", ClockAhead: 900 * text.Millisecond}, {ID: "db2", State: "standby", Twin: "other"}, {ID: "db3", State: "standby", ClockAhead: -2500 * text.Millisecond}, {ID: "db4", State: "standby", ClockAhead: 9000 * text.Millisecond, Stale: true, LastSeenAgo: 70000 * text.Millisecond},
		{ID: "db5", State: "standby", ClockAhead: 90000 * text.Millisecond},
	}}
	if err := printStatus(show.SheetOf(&b, true, 0), s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\x1b[31mtwo processes have the node.id db2: stop one of them\x1b[0m  → \x1b[1mbaton doctor",
		"\x1b[33mthe clock of db3 is 2.5s behind that of Redis\x1b[0m",
		"\x1b[33mthe clock of db5 is 1m30s ahead of that of Redis: its slots follow the clock of Redis\x1b[0m",
		"db4 is silent: not seen for 1m10s",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%q", want, b.String())
		}
	}
	if strings.Contains(b.String(), "clock of db1") || strings.Contains(b.String(), "clock of db4") {
		t.Errorf("a clock that is right enough, or of a node that is gone:\n%s", b.String())
	}
}

func TestStatusTellsWhatAHandoverWaitsFor(t *testing.T) {
	s := diagnose.Snapshot{LockKey: "baton", Leader: &diagnose.Leader{NodeID: "db1", Ending: "the end of report"}}
	s.Locks = slices.Grow(s.Locks, 1)[:1]
	s.Locks[0].Key, s.Locks[0].Leader = "other", &diagnose.Leader{NodeID: "db2", Ending: "the end of export"}
	var told []string
	for _, h := range hints(s) {
		told = append(told, h.what)
	}
	want := []string{"db1 hands over the lead, and waits for the end of report", `db2 hands over the lead for lock "other", and waits for the end of export`}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

func TestStatusCallsAHandoverNoFailure(t *testing.T) {
	over := diagnose.Event{At: time.Now(), Event: "stepped_down", NodeID: "db1"}
	s := diagnose.Snapshot{
		LockKey: "baton", Events: []diagnose.Event{over}, Locks: []diagnose.Lock{{Key: "other", Last: &over}},
		Nodes: []diagnose.Node{{ID: "db2"}},
	}
	var told []string
	for _, h := range hints(s) {
		told = append(told, h.what)
	}
	want := []string{
		"db1 has handed over the lead: another node takes it within seconds",
		`db1 has handed over the lead for lock "other": another node takes it within seconds`,
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

func TestStatusTellsThatNobodyCouldTakeOver(t *testing.T) {
	const want = "no other node could take over"
	s := diagnose.Snapshot{LockKey: "baton", Leader: &diagnose.Leader{NodeID: "db1"}, Nodes: []diagnose.Node{
		{ID: "db1", State: "leading"}, {ID: "db2", Observer: true}, {ID: "db3", Aside: "for 20s: its database is away"}, {ID: "db4", Stale: true},
		{ID: "db6", State: diagnose.StateSilent, Led: true},
	}}
	tells := func() bool {
		return slices.ContainsFunc(hints(s), func(h hint) bool { return strings.HasPrefix(h.what, want) })
	}
	if !tells() {
		t.Errorf("nobody can, and it is not told: %+v", hints(s))
	}
	s.Nodes = append(s.Nodes, diagnose.Node{ID: "db5", State: "standby"})
	if tells() {
		t.Error("db5 can take over")
	}
}

func TestStatusTellsOfWhoIsMissingAndWhatIsLate(t *testing.T) {
	due := time.Date(2026, 3, 1, 2, 30, 0, 0, time.UTC)
	s := diagnose.Snapshot{
		LockKey: "baton", Leader: &diagnose.Leader{NodeID: "db1"},
		Nodes: []diagnose.Node{{ID: "db1", State: "leading"}, {ID: "db2", State: diagnose.StateSilent, Led: true}, {ID: "db3", State: "standby"}},
		Jobs:  []diagnose.Job{{Name: "export", Command: true, DueAt: due, LateAfterSeconds: 60}},
	}
	want := []hint{
		{show.Bad, "export is late: due at Sun 2026-03-01 02:30 +00:00, and has not succeeded since", "baton job history export"},
		{show.Uneasy, "db2 is silent: it led, and has not been seen since; on that host:", "systemctl status baton"},
	}
	if got := hints(s); !slices.Equal(got, want) {
		t.Errorf("it tells %+v, want %+v", got, want)
	}
}

func TestInAPauseTheWayToEndItIsToldFirst(t *testing.T) {
	var s diagnose.Snapshot
	if err := json.Unmarshal([]byte(`{"lock_key": "baton", "paused": {"reason": "by alice"}, "locks": [{"key": "nightly"}]}`), &s); err != nil {
		t.Fatal(err)
	}
	if all := hints(s); len(all) != 1 || all[0].command != "baton resume" {
		t.Errorf("%+v", all)
	}
	s.Paused = nil
	if all := hints(s); len(all) != 2 {
		t.Errorf("without a pause: %+v", all)
	}
}

func TestColoursTellHowGraveItIs(t *testing.T) {
	for _, tc := range []struct {
		want  string
		print func(s *show.Sheet) error
	}{
		{"\x1b[31merror\x1b[0m    redis    it is full\n", func(s *show.Sheet) error {
			return printReport(s, doctor.ReportOf([]doctor.Finding{{Severity: doctor.SeverityError, Subject: "redis", What: "it is full"}}), 100)
		}},
		{"\x1b[31mdb2 does not lead\x1b[0m:\n- \x1b[33mit is \\x1b[2J paused\x1b[0m\n  → baton resume\n", func(s *show.Sheet) error {
			return printExplanation(s, operate.Explanation{NodeID: "db2", Reasons: []operate.Why{{Code: "x", What: "it is \x1b[2J paused", Do: "baton resume"}}})
		}},
		{"\x1b[32m5 ms after the order\x1b[0m;", func(s *show.Sheet) error {
			return printDrill(s, []direct.DrillResult{{Took: 5 * text.Millisecond, Lease: 10 * text.Millisecond}})
		}},
		{"\x1b[31m15 ms after the order\x1b[0m;", func(s *show.Sheet) error {
			return printDrill(s, []direct.DrillResult{{Took: 15 * text.Millisecond, Lease: 10 * text.Millisecond}})
		}},
	} {
		var b strings.Builder
		if err := tc.print(show.SheetOf(&b, true, 0)); err != nil || !strings.Contains(b.String(), tc.want) {
			t.Errorf("want %q in %q, %v", tc.want, b.String(), err)
		}
	}
}

func TestANodeThatTellsAsOftenAsItShouldLooksAlive(t *testing.T) {
	for _, tc := range []struct {
		node  diagnose.Node
		asked string
		want  string
	}{
		{diagnose.Node{ID: "db1", LastSeenAgo: 29_000 * text.Millisecond}, "", "within 35s"},
		{diagnose.Node{ID: "db1", LastSeenAgo: 29_000 * text.Millisecond}, "db1", "now"},
		{diagnose.Node{ID: "db1", LastSeenAgo: 29_000 * text.Millisecond, Twin: "other"}, "db1", "within 35s"},
		{diagnose.Node{ID: "db1", LastSeenAgo: 41_000 * text.Millisecond}, "db2", "41s ago"},
	} {
		if got := seen(tc.node, tc.asked); got != tc.want {
			t.Errorf("%+v asked of %q: %q, want %q", tc.node, tc.asked, got, tc.want)
		}
	}
}

func TestNoNextRunIsPromisedWhileNoNodeLeadsUnderTheLock(t *testing.T) {
	now := time.Now()
	j := diagnose.Job{Name: "a", Lock: "own", NextRun: now.Add(time.Hour)}
	us, them := &diagnose.Leader{NodeID: "db1"}, &diagnose.Leader{Owner: "x", Foreign: true}
	for _, tc := range []struct {
		leader *diagnose.Leader
		locks  string
		want   string
	}{
		{us, "", "in 1h"}, {nil, "", "once a node leads"}, {them, "", "once a node leads"},
		{them, `[{"key": "own", "leader": {"node_id": "db1"}}]`, "in 1h"},
		{us, `[{"key": "own"}]`, "once a node leads"}, {nil, `[{"key": "other", "leader": {"node_id": "db1"}}]`, "once a node leads"},
	} {
		s := diagnose.Snapshot{Now: now, Leader: tc.leader}
		if err := json.Unmarshal([]byte(cmp.Or(tc.locks, "[]")), &s.Locks); err != nil {
			t.Fatal(err)
		}
		if got := jobcmd.NextRun(j, s); got != tc.want {
			t.Errorf("leader %+v, locks %s: %q, want %q", tc.leader, tc.locks, got, tc.want)
		}
	}
}

func TestDataThatIsNotWrittenIsNotCalledUpToDate(t *testing.T) {
	well := diagnose.Job{Name: "views", LagSeconds: new(8.0), Backlog: new(int64(3))}
	stuck := diagnose.Job{Name: "users", LagSeconds: new(8.0), Backlog: new(int64(45000)), ConsecutiveFailures: 16}
	if text, c := dataState(diagnose.Snapshot{Jobs: []diagnose.Job{well, stuck}}); c != show.Bad || text != "NOT WRITTEN: users fails (45000 changes wait)" {
		t.Errorf("%s (%q)", text, c)
	}
	stuck.Backlog = new(int64(0)) // the job has written all changes
	if text, c := dataState(diagnose.Snapshot{Jobs: []diagnose.Job{well, stuck}}); c != show.Good || text != "up to date, at most 8s behind" {
		t.Errorf("%s (%q)", text, c)
	}
}
