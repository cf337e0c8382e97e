package work

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/source/spec"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
)

func TestAJobIsDueAtItsSlotUntilItSucceeds(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	at := midnight.Add
	const hour = time.Hour
	for name, c := range map[string]struct {
		schedule string
		command  bool
		st       redisledger.JobState
		behind   time.Time
		want     time.Time
	}{
		"after its last success":                         {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-22*hour + time.Minute)}, want: at(2 * hour)},
		"never succeeded, since a term long ago":         {schedule: "0 2 * * *", st: redisledger.JobState{Begun: at(-70 * hour)}, want: at(-70 * hour)},
		"never ran":                                      {schedule: "0 2 * * *", st: redisledger.JobState{Known: at(0)}, want: at(2 * hour)},
		"paused after its slot":                          {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-22 * hour), Paused: &redisledger.JobPause{At: at(3 * hour)}}, want: at(2 * hour)},
		"the pause has ended since the slot":             {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-21 * hour), Pauses: []redisledger.TimeRange{{From: at(hour), To: at(3 * hour)}}}, want: at(26 * hour)},
		"its slot was before the pause that ended":       {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-21 * hour), Pauses: []redisledger.TimeRange{{From: at(3 * hour), To: at(4 * hour)}}}, want: at(2 * hour)},
		"a flush that goes on is due since it is behind": {schedule: "@always", behind: at(hour), want: at(hour)},
		"a command that is kept running":                 {schedule: "@always", command: true},
	} {
		slots, err := schedule.Parse(c.schedule, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		one := Task{Task: tasks.Task{Config: config.Job{Name: "users", Schedule: c.schedule, Flush: config.Flush{From: config.From{Type: spec.Counters}}}, Schedule: slots}}
		if c.command {
			one.Config.Flush, one.Config.Command = config.Flush{}, []string{"true"}
		}
		w := NewWatch()
		w.behind["users"] = c.behind
		if got := w.stands(one, c.st, Leader{}).DueAt; !got.Equal(c.want) {
			t.Errorf("%s: due at %v, want %v", name, got, c.want)
		}
	}
}

func TestAFlushThatNeverEndedWellIsBehindSinceItBegan(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	views := Task{Task: tasks.Task{
		Config:  config.Job{Name: "views", Flush: config.Flush{From: config.From{Type: spec.Counters}}},
		Sources: []flush.Source{struct{ flush.Counted }{}},
	}}
	w := NewWatch()
	lag := func(backlog int64, want time.Duration) {
		t.Helper()
		if got := w.measured(views, backlog, time.Time{}, now); got != want {
			t.Errorf("%v behind, want %v", got, want)
		}
		now = now.Add(time.Minute)
	}
	lag(5, 0) // the time since when they wait is unknown
	lag(5, time.Minute)
	w.states["views"] = redisledger.JobState{Begun: now.Add(-time.Hour)}
	lag(5, time.Hour)
	lag(0, 0)
	lag(5, 0)
	lag(5, time.Minute)
	w.states["views"] = redisledger.JobState{Begun: now.Add(-time.Hour), Fresh: now.Add(-time.Second)}
	lag(5, time.Second)
}
