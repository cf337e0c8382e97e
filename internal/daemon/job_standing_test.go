package daemon

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/redisstore"
)

func TestAJobIsOverdueFromItsSlotUntilItSucceeds(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	at := midnight.Add
	const hour = time.Hour
	flushes := config.Flush{From: config.From{Type: config.Counters}}
	running := []redisstore.OpenRun{{}}
	for name, c := range map[string]struct {
		schedule string
		command  bool
		st       redisstore.JobState
		began    time.Time
		unpaused time.Time
		lag, now time.Duration
		want     time.Duration
	}{
		"before its next slot":                 {schedule: "0 2 * * *", st: redisstore.JobState{LastSuccess: at(-22*hour + time.Minute)}, now: hour},
		"an hour after it":                     {schedule: "0 2 * * *", st: redisstore.JobState{LastSuccess: at(-22*hour + time.Minute)}, now: 3 * hour, want: hour},
		"a command that runs":                  {schedule: "0 2 * * *", command: true, st: redisstore.JobState{LastSuccess: at(-22 * hour), Running: running}, now: 3 * hour},
		"a flush that hangs":                   {schedule: "0 2 * * *", st: redisstore.JobState{LastSuccess: at(-22*hour + time.Minute), Running: running}, now: 3 * hour, want: hour},
		"never succeeded, and not due yet":     {schedule: "0 2 * * *", began: at(0), now: hour},
		"never succeeded":                      {schedule: "0 2 * * *", began: at(0), now: 3 * hour, want: hour},
		"paused":                               {schedule: "0 2 * * *", st: redisstore.JobState{LastSuccess: at(-50 * hour), Paused: &redisstore.JobPause{}}, now: 3 * hour},
		"the pause has ended since the slot":   {schedule: "0 2 * * *", st: redisstore.JobState{LastSuccess: at(-50 * hour)}, unpaused: at(3 * hour), now: 4 * hour},
		"a flush that goes on is what it lags": {schedule: "@always", lag: time.Minute, now: hour, want: time.Minute},
		"a command that is kept running":       {schedule: "@always", command: true, now: hour},
	} {
		schedule, err := job.ParseSchedule(c.schedule, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		one := task{config: config.Job{Name: "users", Schedule: c.schedule, Flush: flushes}, schedule: schedule}
		if c.command {
			one.config.Flush, one.config.Command = config.Flush{}, []string{"true"}
		}
		w := newJobWatch()
		w.began = c.began
		w.unpaused["users"] = c.unpaused
		if got := w.overdue(one, c.st, c.lag, at(c.now)); got != c.want {
			t.Errorf("%s: overdue for %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatIsAroundANodeIsCounted(t *testing.T) {
	asked := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	now := asked.Add(2 * time.Second)
	node := func(id, hash string, ago time.Duration) redisstore.Node {
		n := redisstore.Node{ID: id, SeenMS: now.Add(-ago).UnixMilli()}
		n.ConfigHash = hash
		return n
	}
	p := redisstore.Picture{Now: now, Owner: "o", Leader: "a", Nodes: []redisstore.Node{
		node("a", "1", 0), node("b", "1", 30*time.Second), node("c", "2", time.Second), node("d", "2", 2*time.Minute), node("e", "1", 25*time.Hour),
	}}
	p.Paused = &redisstore.Pause{}
	s := surroundings(p, asked, asked.Add(time.Second))
	if s.Live != 3 || s.Gone != 1 || s.Drifted != 1 || !s.Paused || s.Offset != 1500*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestTheLeaderTellsHowItsJobsStand(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *")
	l.config.Jobs[0].LateAfter = 90 * time.Minute
	l.do("HSET", "{baton}:job:views", "consecutive_failures", "4", "paused_reason", "by alice", "paused_at", "1")
	r := l.start()
	for name, want := range map[string]string{
		`baton_job_consecutive_failures{job="views"}`: "4", `baton_job_paused{job="views"}`: "1", `baton_job_late_after_seconds{job="views"}`: "5400",
		`baton_nodes{lock="baton",state="live"}`: "1", `baton_redis_up{lock="baton"}`: "1",
	} {
		await(t, name, func() bool { return r.metric(name) == want })
	}
}
