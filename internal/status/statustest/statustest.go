// Package statustest contains states, nodes and clients for tests of the status page, its API and its server.
package statustest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

// Hostile is a text that would run as a script, end an attribute, or make the page blank if it were not escaped.
const Hostile = `"><script>alert(1)</script></style><img src=x onerror='alert(2)'>{{.}}`

// Sample returns a state with many kinds of content, for the time now.
func Sample(now time.Time) diagnose.Snapshot {
	shanghai := time.FixedZone("CST", 8*3600)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return diagnose.Snapshot{
		NodeID: "db2", Version: "0.1.0", LockKey: "baton", Role: diagnose.RoleStandby, Now: now,
		Leader: &diagnose.Leader{NodeID: "db1", Owner: "0d1f6f5e-9c1b-4b87-8a0e-5f0c2a4f7f10", Epoch: 1753192331043,
			Since: ago(2*time.Hour + 3*time.Minute), LeaseLeft: 8120 * text.Millisecond, TTL: 10000 * text.Millisecond},
		Redis: diagnose.Redis{Host: "127.0.0.1:6379", OK: true, Since: ago(51 * time.Hour)},
		Stores: []diagnose.Store{
			{Name: "shop", Redis: diagnose.Redis{Host: "10.0.1.1:6379", OK: true, Since: ago(20 * time.Hour)}},
		},
		Nodes: []diagnose.Node{
			{ID: "db1", State: "leading", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.11:9747",
				LastSeenAgo: 400 * text.Millisecond},
			{ID: "db2", State: "standby", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.12:9747",
				LastSeenAgo: 900 * text.Millisecond},
			{ID: "db3", State: "standby", Version: "0.0.9", ConfigHash: "17aa03c4ee", Address: "10.0.0.13:9747",
				LastSeenAgo: 754000 * text.Millisecond, Stale: true},
		},
		Jobs: []diagnose.Job{
			{Name: "page-views", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC", Target: "articles in main",
				NextRun: now.Add(3200 * time.Millisecond).UTC(), Backlog: new(int64(1240)), LagSeconds: new(1.4),
				LastRun: &diagnose.Run{State: "succeeded", Trigger: "schedule", Slot: ago(1800 * time.Millisecond),
					Started: ago(1800 * time.Millisecond), Duration: 84 * text.Millisecond, Rows: 5210,
					NodeID: "db1", Epoch: 1753192331043}},
			{Name: "users", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC",
				Target: "users in main", Store: "shop",
				Backlog: new(int64(184200)), LagSeconds: new(200.0), DueAt: now.Add(-195 * time.Second),
				Running: &diagnose.Run{State: "running", Trigger: "schedule", Started: ago(12 * time.Second),
					NodeID: "db1", Rows: 1200, Batches: 3, Backlog: new(int64(185400))},
				LastRun: &diagnose.Run{State: "succeeded", Trigger: "catch_up", Started: ago(4 * time.Minute),
					Duration: 41200 * text.Millisecond, Rows: 61000, Dead: 3, NodeID: "db1", Epoch: 1753192331043}},
			{Name: "report", Schedule: "30 2 * * *", ScheduleWords: "every day at 02:30", TimeZone: "Asia/Shanghai",
				Target:  "/usr/bin/report --yesterday",
				NextRun: now.Add(11*time.Hour + 24*time.Minute).In(shanghai), ConsecutiveFailures: 3,
				LastRun: &diagnose.Run{State: "failed", Trigger: "retry", Started: ago(13 * time.Hour),
					Duration: 3100 * text.Millisecond, NodeID: "db3", Epoch: 1753100000007,
					Error: "write table \"articles\": column \"title\" is varchar(80), the value has 211 characters: " + Hostile}},
			{Name: "cleanup", Schedule: "@hourly", ScheduleWords: "every hour, on the hour", TimeZone: "UTC",
				NextRun: now.Add(35 * time.Minute).UTC(),
				Paused:  &diagnose.Pause{Since: ago(20 * time.Minute), Reason: "by alice: " + Hostile}},
		},
		Events: []diagnose.Event{
			{At: ago(123 * time.Minute), Event: "won", NodeID: "db1", Epoch: 1753192331043},
			{At: ago(123*time.Minute + 40*time.Millisecond), Event: "stepped_down", NodeID: "db3", Epoch: 1753100000007,
				Reason: "asked by alice: upgrade"},
			{At: ago(26 * time.Hour), Event: "won", NodeID: "db3", Epoch: 1753100000007},
			{At: ago(26*time.Hour + 9*time.Second), Event: "expired", NodeID: "db1", Epoch: 1753100000006,
				Reason: "no renewal was answered in time"},
			{At: ago(26*time.Hour + 20*time.Second), Event: "quarantined", NodeID: "db2", Reason: "Redis was restarted"},
		},
	}
}

// FakeNode is a node that returns the answers that a test has stored in it.
type FakeNode struct {
	operate.Node // other methods are not implemented
	PastEvents   []diagnose.Event
	OtherEvents  map[string][]diagnose.Event // the events of further locks
	Entries      []operate.Entry
	Output       operate.Printed
	Waiting      []operate.Letter
	Deleted      []operate.DeletedRow
	KeptRows     map[string]operate.KeptCount // by job; a job without an entry keeps no rows
	Grouped      []operate.LetterReason
	Measured     []operate.Sample
	Latest       map[string][]operate.Brief
	Asked        func(string)
	Accepts      operate.Acceptance

	LettersErr, AcceptsErr error
}

func (s *FakeNode) tell(what string) {
	if s.Asked != nil {
		s.Asked(what)
	}
}

// History implements [operate.Node].
func (s *FakeNode) History(_ context.Context, _, before string, n int) ([]operate.Entry, error) {
	s.tell("history")
	from := 0
	for i, e := range s.Entries {
		if before != "" && e.ID >= before { // all ids have the same number of digits
			from = i + 1
		}
	}
	return s.Entries[from:min(from+n, len(s.Entries))], nil
}

// Events implements [operate.Node].
func (s *FakeNode) Events(_ context.Context, n int) ([]diagnose.Event, error) {
	return s.PastEvents[:min(n, len(s.PastEvents))], nil
}

// LockEvents implements [operate.Node].
func (s *FakeNode) LockEvents(_ context.Context, n int) (map[string][]diagnose.Event, error) {
	s.tell("lock events")
	all := map[string][]diagnose.Event{}
	for lock, events := range s.OtherEvents {
		all[lock] = events[:min(n, len(events))]
	}
	return all, nil
}

// Printed implements [operate.Node].
func (s *FakeNode) Printed(context.Context, string, string) (operate.Printed, error) {
	s.tell("output")
	return s.Output, nil
}

// Letters implements [operate.Node].
func (s *FakeNode) Letters(_ context.Context, f operate.LetterFilter, n int) ([]operate.Letter, error) {
	s.tell("letters")
	if f.Reason != "" {
		var found []operate.Letter
		for _, l := range s.Waiting {
			if l.Job == f.Job && l.Error == f.Reason {
				found = append(found, l)
			}
		}
		return found[:min(n, len(found))], s.LettersErr
	}
	return s.Waiting[:min(n, len(s.Waiting))], s.LettersErr
}

// Reasons implements [operate.Node].
func (s *FakeNode) Reasons(context.Context, operate.LetterFilter) ([]operate.LetterReason, error) {
	s.tell("reasons")
	return s.Grouped, s.LettersErr
}

// DeletedRows implements [operate.Node].
func (s *FakeNode) DeletedRows(_ context.Context, f operate.RowFilter, n int) ([]operate.DeletedRow, error) {
	for _, row := range s.Deleted {
		if row.ID == f.ID {
			return []operate.DeletedRow{row}, nil
		}
	}
	if f.ID != 0 {
		return nil, operate.ErrNoRow
	}
	return s.Deleted[:min(n, len(s.Deleted))], nil
}

// Kept implements [operate.Node].
func (s *FakeNode) Kept(_ context.Context, job string) (operate.KeptCount, error) {
	count, given := s.KeptRows[job]
	count.Known = count.Known || !given
	return count, nil
}

// Acceptance implements [operate.Node].
func (s *FakeNode) Acceptance(context.Context, string) (operate.Acceptance, error) {
	return s.Accepts, s.AcceptsErr
}

// Samples implements [operate.Node].
func (s *FakeNode) Samples(context.Context, time.Time) ([]operate.Sample, error) {
	s.tell("samples")
	return s.Measured, nil
}

// Recent implements [operate.Node].
func (s *FakeNode) Recent(context.Context) (map[string][]operate.Brief, error) {
	s.tell("recent")
	return s.Latest, nil
}

// Large returns an installation with the given numbers of jobs, nodes and history entries, and with samples of one hour.
func Large(now time.Time, jobs, nodes, entries int) (diagnose.Snapshot, *FakeNode) {
	s := Sample(now)
	s.Jobs, s.Nodes, s.Events, s.Stores = nil, nil, nil, nil
	for i := range jobs {
		name := fmt.Sprintf("orders-of-region-%03d", i)
		s.Jobs = append(s.Jobs, diagnose.Job{
			Name: name, Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC",
			Target: "main.orders_of_region", NextRun: now.Add(3 * time.Second).UTC(),
			Backlog: new(int64(1240 + i)), LagSeconds: new(1.4), Lock: "baton", LateAfterSeconds: 60,
			LastRun: &diagnose.Run{ID: "01890a5d-ac96-774b-bcce-b302099a8057", State: "succeeded", Trigger: "schedule",
				Started: now.Add(-2 * time.Second), Duration: 84 * text.Millisecond, Rows: 5210, NodeID: "db1"},
		})
	}
	vary(s.Jobs, now)
	for i := range nodes {
		s.Nodes = append(s.Nodes, diagnose.Node{ID: fmt.Sprintf("db%d", i+1), State: "standby", Version: "0.1.0",
			ConfigHash: "9f3c1d7ab2", Address: fmt.Sprintf("10.0.0.%d:9747", i),
			LastSeenAgo: text.Seconds(i) * 300 * text.Millisecond, ClockAhead: 120 * text.Millisecond})
	}
	for i := range 50 {
		at := now.Add(-time.Duration(i/2)*14*time.Minute - time.Duration(i%2)*200*time.Millisecond - time.Minute)
		node := fmt.Sprintf("db%d", (i+1)/2%max(nodes, 1)+1)
		s.Events = append(s.Events, diagnose.Event{At: at, Event: map[bool]string{true: "won",
			false: "stepped_down"}[i%2 == 0], NodeID: node, Epoch: int64(1753192331043 - i),
			Reason: "asked by alice: upgrade to the next version"})
	}
	d := &FakeNode{Latest: map[string][]operate.Brief{}, OtherEvents: map[string][]diagnose.Event{}}
	addLocks(&s, d, now)
	for i, j := range s.Jobs {
		d.Latest[j.Name] = latestOf(j, i, now)
	}
	for i := range entries {
		d.Entries = append(d.Entries, operate.Entry{
			ID: fmt.Sprintf("%d-0", 1753192331043-i), At: now.Add(-time.Duration(i) * 5 * time.Second),
			Run: &diagnose.Run{ID: fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a%04d", i%10000), State: "failed",
				Trigger: "schedule", Started: now.Add(-time.Duration(i) * 5 * time.Second), Duration: 84 * text.Millisecond,
				Rows: 5210, NodeID: "db1",
				Error: "write table \"orders\": connection refused: dial tcp 10.0.0.31:5432"},
		})
	}
	for i := range 240 {
		levels := map[string]operate.Level{}
		for _, j := range s.Jobs {
			if j.Command {
				continue
			}
			lag := 20 + 180*math.Abs(math.Sin(float64(i)/30)) + float64(i%7)
			levels[j.Name] = operate.Level{LagSeconds: lag, Backlog: int64(lag * 900), RowsPerSecond: new(lag * 31)}
		}
		d.Measured = append(d.Measured, operate.Sample{At: now.Add(-time.Duration(240-i) * 15 * time.Second), Jobs: levels})
	}
	d.Grouped = []operate.LetterReason{{Job: s.Jobs[0].Name, Database: "main", Letters: 150, Oldest: now.Add(-time.Hour),
		Newest: now.Add(-time.Hour), Reason: "column \"title\" is varchar(80), the value has 211 characters"}}
	for i := range 150 {
		d.Waiting = append(d.Waiting, operate.Letter{
			ID: fmt.Sprintf("01890a5dac96774bbcceb302099a%04d", i), Job: s.Jobs[0].Name, Database: "main", At: now.Add(-time.Hour),
			Error:  "column \"title\" is varchar(80), the value has 211 characters",
			Record: `{"key":"article:17","title":"a title that is far longer than the column has room for"}`,
		})
	}
	return s, d
}

// addLocks adds two separate locks that some jobs use. The first lock is handed over from time to time, and the leaders of the second lock
// die.
func addLocks(s *diagnose.Snapshot, d *FakeNode, now time.Time) {
	term := func(lock, node string, from, to time.Duration, end string) { // the newest event first
		events := []diagnose.Event{{At: now.Add(-from), Event: "won", NodeID: node, Epoch: now.Add(-from).UnixMilli()}}
		if end != "" {
			events = append([]diagnose.Event{{At: now.Add(-to), Event: end, NodeID: node, Epoch: events[0].Epoch}}, events...)
		}
		d.OtherEvents[lock] = append(events, d.OtherEvents[lock]...)
	}
	term("billing", "db2", 5*time.Hour, 4*time.Hour, "stepped_down")
	term("billing", "db3", 4*time.Hour-200*time.Millisecond, 150*time.Minute, "expired")
	term("billing", "db1", 125*time.Minute, 40*time.Minute, "stepped_down")
	term("billing", "db2", 40*time.Minute-50*time.Millisecond, 0, "")
	term("mail", "db3", 330*time.Minute, 3*time.Hour, "expired")
	term("mail", "db1", 3*time.Hour-9*time.Second, 12*time.Minute, "expired")
	for lock, leader := range map[string]string{"billing": "db2", "mail": ""} {
		l := diagnose.Lock{Key: lock, Last: &d.OtherEvents[lock][0]}
		if leader != "" {
			l.Leader = &diagnose.Leader{NodeID: leader, Epoch: l.Last.Epoch, Since: l.Last.At,
				LeaseLeft: 8000 * text.Millisecond, TTL: 10000 * text.Millisecond}
		}
		s.Locks = append(s.Locks, l)
	}
	slices.SortFunc(s.Locks, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
}

// vary changes some of the jobs: they run commands, or they are failing, late, running or paused.
func vary(jobs []diagnose.Job, now time.Time) {
	if len(jobs) < 100 {
		return
	}
	for i := 7; i < len(jobs); i += 10 { // these jobs run commands
		j := &jobs[i]
		j.Name, j.Command, j.Backlog, j.LagSeconds = fmt.Sprintf("report-%03d", i), true, nil, nil
		j.Schedule, j.ScheduleWords, j.Target = "30 2 * * *", "every day at 02:30", "/usr/bin/report --yesterday"
		j.NextRun = now.Add(11 * time.Hour).UTC()
	}
	for _, i := range []int{37, 87, 160} {
		j := &jobs[i]
		run := *j.LastRun
		run.State, run.Rows, run.Error = "failed", 0, "exit code 75"
		if !j.Command {
			run.Error = "write table \"orders\": connection refused: dial tcp 10.0.0.31:5432"
		}
		j.LastRun, j.ConsecutiveFailures = &run, 3
	}
	jobs[120].Paused = &diagnose.Pause{Since: now.Add(-20 * time.Minute), Reason: "by alice: the table is migrated"}
	jobs[130].LagSeconds, jobs[130].Backlog, jobs[130].DueAt = new(320.0), new(int64(184200)), now.Add(-320*time.Second)
	for i := 40; i < 46; i++ {
		jobs[i].Running = &diagnose.Run{ID: fmt.Sprintf("01890a5d-ac96-774b-bcce-b30209900%03d", i), State: "running",
			Trigger: "schedule", Started: now.Add(-12 * time.Second), NodeID: "db1", Rows: 1200, Batches: 3}
	}
}

// latestOf returns invented runs for the job j, which is the i-th of many jobs.
func latestOf(j diagnose.Job, i int, now time.Time) (runs []operate.Brief) {
	const n = operate.MostRecent
	for k := range n {
		b := operate.Brief{ID: fmt.Sprintf("%d-0", 1753192331043+k), RunID: fmt.Sprintf("run-%d", k), State: "succeeded",
			Trigger: "schedule", Started: now.Add(-time.Duration(n-k) * 5 * time.Second), NodeID: "db1",
			Duration: text.Seconds(60+900*math.Abs(math.Sin(float64(i*7+k*k)))) * text.Millisecond, Rows: int64(k) * 500}
		switch {
		case (i*31+k*17)%97 == 0:
			b.State = "failed"
		case (i*13+k*29)%151 == 0:
			b.State, b.RunID, b.Duration, b.Count = "missed", "", 0, 3
		case (i*13+k*29)%151 == 1:
			b.State = "cancelled"
		}
		runs = append(runs, b)
	}
	last := &runs[n-1]
	last.RunID, last.State, last.Duration = j.LastRun.ID, j.LastRun.State, j.LastRun.Duration
	return runs
}

// Get sends a GET request for path to the handler h, without a network.
func Get(h http.Handler, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// Fixed returns a source that always returns the state s.
func Fixed(s diagnose.Snapshot) func(context.Context) (diagnose.Snapshot, error) {
	return func(context.Context) (diagnose.Snapshot, error) { return s, nil }
}

// Absurd returns a state with impossible values, which someone with access to Redis could write.
func Absurd(now time.Time) diagnose.Snapshot {
	far, huge, lag := time.UnixMilli(math.MaxInt64), strings.Repeat("ü", 5<<20), math.Inf(1)
	s := Sample(now)
	s.Leader = &diagnose.Leader{NodeID: huge, Owner: huge, Since: far, TTL: math.MaxInt64, LeaseLeft: math.MaxInt64,
		Epoch: math.MaxInt64}
	s.Paused = &diagnose.Pause{Since: far, Reason: huge}
	run := diagnose.Run{ID: huge, State: huge, Trigger: huge, By: huge, Started: far,
		Slot: time.UnixMilli(math.MinInt64), Duration: math.MinInt64, Rows: math.MinInt64, Dead: math.MaxInt64,
		Output: huge, Error: huge, NodeID: huge}
	for range 2000 {
		s.Nodes = append(s.Nodes, diagnose.Node{ID: "x", LastSeenAgo: math.MaxInt64, ClockAhead: math.MinInt64})
		s.Jobs[1].Open = append(s.Jobs[1].Open, diagnose.Run{ID: "x", Started: far})
	}
	s.Nodes[0] = diagnose.Node{ID: huge, State: huge, Version: huge, Aside: huge, ConfigHash: huge, Address: huge,
		Twin: huge, LastSeenAgo: math.MinInt64}
	s.Jobs[0].Running, s.Jobs[0].LastRun, s.Jobs[0].LagSeconds, s.Jobs[0].Backlog = &run, &run, &lag, new(int64(math.MinInt64))
	s.Jobs[0].Paused, s.Jobs[0].Retry = &diagnose.Pause{Since: far, Until: far, Reason: huge},
		&diagnose.Retry{Slot: far, At: far, Attempt: math.MinInt64}
	s.Jobs[0].ConsecutiveFailures, s.Jobs[0].NextRun = math.MaxInt64, far
	s.Events[0] = diagnose.Event{At: far, Event: huge, NodeID: huge, Reason: huge}
	s.Events[1].At = time.UnixMilli(math.MinInt64)
	return s
}
