package work

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/job/plan"
)

// The runner gets all settings of a job's runs from the configuration.
func TestRunnerIsToldTheWholePolicy(t *testing.T) {
	j := config.Job{Name: "report", Schedule: "@hourly", Command: config.Command{"/bin/report"}, Policy: config.Policy{
		TimeZone: "UTC", CatchUp: config.CatchUpAll, StartingDeadline: time.Minute,
		Overlap: config.OverlapAllow, MaxOverlap: 3, OnLost: config.OnLostRerun, Jitter: time.Second, Timeout: time.Hour,
		Retry: config.Retry{Limit: 2, Delay: 3 * time.Second, MaxDelay: 4 * time.Second},
	}}
	tasks, err := New(config.Config{Jobs: []config.Job{j}}, nil, nil, Reports{})
	if err != nil {
		t.Fatal(err)
	}
	got := tasks[0].Policy()
	retry := plan.Retry{Limit: 2, Delay: 3 * time.Second, MaxDelay: 4 * time.Second}
	if got.Schedule == nil || got.CatchUp != plan.CatchUpAll || got.StartingDeadline != time.Minute ||
		got.Overlap != plan.OverlapAllow || got.MaxOverlap != 3 ||
		got.OnLost != plan.OnLostRerun || got.Jitter != time.Second || got.Timeout != time.Hour || got.Retry != retry {
		t.Errorf("got %+v", got)
	}
}
