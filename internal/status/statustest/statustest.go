// Package statustest has states, nodes and clients for tests of page, API and server.
package statustest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// Hostile is a text that would run, break out of an attribute, or blank the page
// if it were not escaped.
const Hostile = `"><script>alert(1)</script></style><img src=x onerror='alert(2)'>{{.}}`

// Sample is a state with a bit of everything, as of now.
func Sample(now time.Time) diagnose.Snapshot {
	shanghai := time.FixedZone("CST", 8*3600)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return diagnose.Snapshot{
		NodeID: "db2", Version: "0.1.0", LockKey: "baton", Role: diagnose.RoleStandby, Now: now,
		Leader: &diagnose.Leader{NodeID: "db1", Owner: "0d1f6f5e-9c1b-4b87-8a0e-5f0c2a4f7f10", Epoch: 1753192331043,
			Since: ago(2*time.Hour + 3*time.Minute), LeaseLeftMS: 8120, TTLMS: 10000},
		Redis: diagnose.Redis{Host: "127.0.0.1:6379", OK: true, Since: ago(51 * time.Hour)},
		Stores: []diagnose.Store{
			{Name: "shop", Redis: diagnose.Redis{Host: "10.0.1.1:6379", OK: true, Since: ago(20 * time.Hour)}},
		},
		Nodes: []diagnose.Node{
			{ID: "db1", State: "leading", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.11:9747", LastSeenMSAgo: 400},
			{ID: "db2", State: "standby", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.12:9747", LastSeenMSAgo: 900},
			{ID: "db3", State: "standby", Version: "0.0.9", ConfigHash: "17aa03c4ee", Address: "10.0.0.13:9747",
				LastSeenMSAgo: 754000, Stale: true},
		},
		Jobs: []diagnose.Job{
			{Name: "page-views", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC", Target: "articles in main",
				NextRun: now.Add(3200 * time.Millisecond).UTC(), Backlog: new(int64(1240)), LagSeconds: new(1.4),
				LastRun: &diagnose.Run{State: "succeeded", Trigger: "schedule", Slot: ago(1800 * time.Millisecond),
					Started: ago(1800 * time.Millisecond), DurationMS: 84, Rows: 5210, NodeID: "db1", Epoch: 1753192331043}},
			{Name: "users", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC",
				Target: "users in main", Store: "shop",
				Backlog: new(int64(184200)), LagSeconds: new(200.0), DueAt: now.Add(-195 * time.Second),
				Running: &diagnose.Run{State: "running", Trigger: "schedule", Started: ago(12 * time.Second),
					NodeID: "db1", Rows: 1200, Batches: 3, Backlog: new(int64(185400))},
				LastRun: &diagnose.Run{State: "succeeded", Trigger: "catch_up", Started: ago(4 * time.Minute),
					DurationMS: 41200, Rows: 61000, Dead: 3, NodeID: "db1", Epoch: 1753192331043}},
			{Name: "report", Schedule: "30 2 * * *", ScheduleWords: "every day at 02:30", TimeZone: "Asia/Shanghai",
				Target:  "/usr/bin/report --yesterday",
				NextRun: now.Add(11*time.Hour + 24*time.Minute).In(shanghai), ConsecutiveFailures: 3,
				LastRun: &diagnose.Run{State: "failed", Trigger: "retry", Started: ago(13 * time.Hour),
					DurationMS: 3100, NodeID: "db3", Epoch: 1753100000007,
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

// Shelf is a node that answers what a test has put there.
type Shelf struct {
	operate.Node // answers nothing else
	PastEvents   []diagnose.Event
	Entries      []operate.Entry
	Output       operate.Printed
	Waiting      []operate.Letter
	Measured     []operate.Sample
	Asked        func(string)

	LettersErr error
}

func (s *Shelf) tell(what string) {
	if s.Asked != nil {
		s.Asked(what)
	}
}

// History is an [operate.Node]'s.
func (s *Shelf) History(_ context.Context, _, before string, n int) ([]operate.Entry, error) {
	s.tell("history")
	from := 0
	for i, e := range s.Entries {
		if before != "" && e.ID >= before { // all have as many digits
			from = i + 1
		}
	}
	return s.Entries[from:min(from+n, len(s.Entries))], nil
}

// Events is an [operate.Node]'s.
func (s *Shelf) Events(_ context.Context, n int) ([]diagnose.Event, error) {
	return s.PastEvents[:min(n, len(s.PastEvents))], nil
}

// Printed is an [operate.Node]'s.
func (s *Shelf) Printed(context.Context, string, string) (operate.Printed, error) {
	s.tell("output")
	return s.Output, nil
}

// Letters is an [operate.Node]'s.
func (s *Shelf) Letters(_ context.Context, _ operate.LetterFilter, n int) ([]operate.Letter, error) {
	s.tell("letters")
	return s.Waiting[:min(n, len(s.Waiting))], s.LettersErr
}

// Samples is an [operate.Node]'s.
func (s *Shelf) Samples(context.Context, time.Time) ([]operate.Sample, error) {
	s.tell("samples")
	return s.Measured, nil
}

// Large is an installation of that many jobs, nodes and history entries, with an hour of samples.
func Large(now time.Time, jobs, nodes, entries int) (diagnose.Snapshot, *Shelf) {
	s := Sample(now)
	s.Jobs, s.Nodes, s.Events, s.Stores = nil, nil, nil, nil
	for i := range jobs {
		name := fmt.Sprintf("orders-of-region-%03d", i)
		s.Jobs = append(s.Jobs, diagnose.Job{
			Name: name, Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC",
			Target: "main.orders_of_region", NextRun: now.Add(3 * time.Second).UTC(),
			Backlog: new(int64(1240 + i)), LagSeconds: new(1.4), Lock: "baton", LateAfterSeconds: 60,
			LastRun: &diagnose.Run{ID: "01890a5d-ac96-774b-bcce-b302099a8057", State: "succeeded", Trigger: "schedule",
				Started: now.Add(-2 * time.Second), DurationMS: 84, Rows: 5210, NodeID: "db1"},
		})
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, diagnose.Node{ID: fmt.Sprintf("db%d", i+1), State: "standby", Version: "0.1.0",
			ConfigHash: "9f3c1d7ab2", Address: fmt.Sprintf("10.0.0.%d:9747", i), LastSeenMSAgo: int64(i) * 300, ClockOffsetMS: 120})
	}
	for i := range 50 {
		at := now.Add(-time.Duration(i) * 7 * time.Minute)
		node := fmt.Sprintf("db%d", i/2%max(nodes, 1)+1)
		s.Events = append(s.Events, diagnose.Event{At: at, Event: map[bool]string{true: "won",
			false: "stepped_down"}[i%2 == 0], NodeID: node, Epoch: int64(1753192331043 - i),
			Reason: "asked by alice: upgrade to the next version"})
	}
	d := &Shelf{}
	for i := range entries {
		d.Entries = append(d.Entries, operate.Entry{
			ID: fmt.Sprintf("%d-0", 1753192331043-i), At: now.Add(-time.Duration(i) * 5 * time.Second),
			Run: &diagnose.Run{ID: fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a%04d", i%10000), State: "failed",
				Trigger: "schedule", Started: now.Add(-time.Duration(i) * 5 * time.Second), DurationMS: 84, Rows: 5210, NodeID: "db1",
				Error: "write table \"orders\": connection refused: dial tcp 10.0.0.31:5432"},
		})
	}
	for i := range 240 {
		levels := map[string]operate.Level{}
		for _, j := range s.Jobs {
			lag := 20 + 180*math.Abs(math.Sin(float64(i)/30)) + float64(i%7)
			levels[j.Name] = operate.Level{LagSeconds: lag, Backlog: int64(lag * 900)}
		}
		d.Measured = append(d.Measured, operate.Sample{At: now.Add(-time.Duration(240-i) * 15 * time.Second), Jobs: levels})
	}
	for i := range 150 {
		d.Waiting = append(d.Waiting, operate.Letter{
			ID: fmt.Sprintf("01890a5dac96774bbcceb302099a%04d", i), Job: s.Jobs[0].Name, Database: "main", At: now.Add(-time.Hour),
			Error:  "column \"title\" is varchar(80), the value has 211 characters",
			Record: `{"key":"article:17","title":"a title that is far longer than the column has room for"}`,
		})
	}
	return s, d
}

// Get asks h without a network in between.
func Get(h http.Handler, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// Fixed is a source of one state.
func Fixed(s diagnose.Snapshot) func(context.Context) (diagnose.Snapshot, error) {
	return func(context.Context) (diagnose.Snapshot, error) { return s, nil }
}

// Absurd is a state as somebody with access to Redis may have made it.
func Absurd(now time.Time) diagnose.Snapshot {
	far, huge, lag := time.UnixMilli(math.MaxInt64), strings.Repeat("ü", 5<<20), math.Inf(1)
	s := Sample(now)
	s.Leader = &diagnose.Leader{NodeID: huge, Owner: huge, Since: far, TTLMS: math.MaxInt64, LeaseLeftMS: math.MaxInt64,
		Epoch: math.MaxInt64}
	s.Paused = &diagnose.Pause{Since: far, Reason: huge}
	run := diagnose.Run{ID: huge, State: huge, Trigger: huge, By: huge, Started: far,
		Slot: time.UnixMilli(math.MinInt64), DurationMS: math.MinInt64, Rows: math.MinInt64, Dead: math.MaxInt64,
		Output: huge, Error: huge, NodeID: huge}
	for range 2000 {
		s.Nodes = append(s.Nodes, diagnose.Node{ID: "x", LastSeenMSAgo: math.MaxInt64, ClockOffsetMS: math.MinInt64})
		s.Jobs[1].Open = append(s.Jobs[1].Open, diagnose.Run{ID: "x", Started: far})
	}
	s.Nodes[0] = diagnose.Node{ID: huge, State: huge, Version: huge, Aside: huge, ConfigHash: huge, Address: huge,
		Twin: huge, LastSeenMSAgo: math.MinInt64}
	s.Jobs[0].Running, s.Jobs[0].LastRun, s.Jobs[0].LagSeconds, s.Jobs[0].Backlog = &run, &run, &lag, new(int64(math.MinInt64))
	s.Jobs[0].Paused, s.Jobs[0].Retry = &diagnose.Pause{Since: far, Until: far, Reason: huge},
		&diagnose.Retry{Slot: far, At: far, Attempt: math.MinInt64}
	s.Jobs[0].ConsecutiveFailures, s.Jobs[0].NextRun = math.MaxInt64, far
	s.Events[0] = diagnose.Event{At: far, Event: huge, NodeID: huge, Reason: huge}
	s.Events[1].At = time.UnixMilli(math.MinInt64)
	return s
}
