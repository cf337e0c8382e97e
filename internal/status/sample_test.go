package status

import (
	"time"
)

// hostile is a text that would run, break out of an attribute, or blank the page
// if it were not escaped.
const hostile = `"><script>alert(1)</script></style><img src=x onerror='alert(2)'>{{.}}`

// sample is a state with a bit of everything, as of now.
func sample(now time.Time) Snapshot {
	shanghai := time.FixedZone("CST", 8*3600)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return Snapshot{
		NodeID: "db2", Version: "0.1.0", LockKey: "baton", Role: RoleStandby, Now: now,
		Leader: &Leader{NodeID: "db1", Owner: "0d1f6f5e-9c1b-4b87-8a0e-5f0c2a4f7f10", Epoch: 1753192331043,
			Since: ago(2*time.Hour + 3*time.Minute), LeaseLeftMS: 8120, TTLMS: 10000},
		Redis: Redis{Host: "127.0.0.1:6379", OK: true, Since: ago(51 * time.Hour)},
		Nodes: []Node{
			{ID: "db1", State: "leading", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.11:9747", LastSeenMSAgo: 400},
			{ID: "db2", State: "standby", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: "10.0.0.12:9747", LastSeenMSAgo: 900},
			{ID: "db3", State: "standby", Version: "0.0.9", ConfigHash: "17aa03c4ee", Address: "10.0.0.13:9747", LastSeenMSAgo: 754000, Stale: true},
		},
		Jobs: []Job{
			{Name: "page-views", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC", Target: "articles in main",
				NextRun: now.Add(3200 * time.Millisecond).UTC(), Backlog: new(int64(1240)), LagSeconds: new(1.4),
				LastRun: &Run{State: "succeeded", Trigger: "schedule", Slot: ago(1800 * time.Millisecond), Started: ago(1800 * time.Millisecond), DurationMS: 84, Rows: 5210, NodeID: "db1", Epoch: 1753192331043}},
			{Name: "users", Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC", Target: "users in main",
				Backlog: new(int64(184200)), LagSeconds: new(200.0), DueAt: now.Add(-195 * time.Second),
				Running: &Run{State: "running", Trigger: "schedule", Started: ago(12 * time.Second), NodeID: "db1", Rows: 1200, Batches: 3, Backlog: new(int64(185400))},
				LastRun: &Run{State: "succeeded", Trigger: "catch_up", Started: ago(4 * time.Minute), DurationMS: 41200, Rows: 61000, Dead: 3, NodeID: "db1", Epoch: 1753192331043}},
			{Name: "report", Schedule: "30 2 * * *", ScheduleWords: "every day at 02:30", TimeZone: "Asia/Shanghai", Target: "/usr/bin/report --yesterday",
				NextRun: now.Add(11*time.Hour + 24*time.Minute).In(shanghai), ConsecutiveFailures: 3,
				LastRun: &Run{State: "failed", Trigger: "retry", Started: ago(13 * time.Hour), DurationMS: 3100, NodeID: "db3", Epoch: 1753100000007,
					Error: "write table \"articles\": column \"title\" is varchar(80), the value has 211 characters: " + hostile}},
			{Name: "cleanup", Schedule: "@hourly", ScheduleWords: "every hour, on the hour", TimeZone: "UTC", NextRun: now.Add(35 * time.Minute).UTC(),
				Paused: &Pause{Since: ago(20 * time.Minute), Reason: "by alice: " + hostile}},
		},
		Events: []Event{
			{At: ago(123 * time.Minute), Event: "won", NodeID: "db1", Epoch: 1753192331043},
			{At: ago(123*time.Minute + 40*time.Millisecond), Event: "stepped_down", NodeID: "db3", Epoch: 1753100000007, Reason: "asked by alice: upgrade"},
			{At: ago(26 * time.Hour), Event: "won", NodeID: "db3", Epoch: 1753100000007},
			{At: ago(26*time.Hour + 9*time.Second), Event: "expired", NodeID: "db1", Epoch: 1753100000006, Reason: "no renewal was answered in time"},
			{At: ago(26*time.Hour + 20*time.Second), Event: "quarantined", NodeID: "db2", Reason: "Redis was restarted"},
		},
	}
}
