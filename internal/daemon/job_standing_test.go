package daemon

import (
	"strconv"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/source/spec"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
	"baton/internal/redislock"
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
		"the pause has ended since the slot":             {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-21 * hour), Pauses: []redisledger.Stretch{{From: at(hour), To: at(3 * hour)}}}, want: at(26 * hour)},
		"its slot was before the pause that ended":       {schedule: "0 2 * * *", st: redisledger.JobState{LastSuccess: at(-21 * hour), Pauses: []redisledger.Stretch{{From: at(3 * hour), To: at(4 * hour)}}}, want: at(2 * hour)},
		"a flush that goes on is due since it is behind": {schedule: "@always", behind: at(hour), want: at(hour)},
		"a command that is kept running":                 {schedule: "@always", command: true},
	} {
		slots, err := schedule.Parse(c.schedule, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		one := task{Task: tasks.Task{Config: config.Job{Name: "users", Schedule: c.schedule, Flush: config.Flush{From: config.From{Type: spec.Counters}}}, Schedule: slots}}
		if c.command {
			one.Config.Flush, one.Config.Command = config.Flush{}, []string{"true"}
		}
		w := newJobWatch()
		w.behind["users"] = c.behind
		if got := w.stands(one, c.st, "").DueAt; !got.Equal(c.want) {
			t.Errorf("%s: due at %v, want %v", name, got, c.want)
		}
	}
}

func TestAFlushThatNeverEndedWellIsBehindSinceItBegan(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	views := task{Task: tasks.Task{
		Config:  config.Job{Name: "views", Flush: config.Flush{From: config.From{Type: spec.Counters}}},
		Sources: []flush.Source{struct{ flush.Counted }{}},
	}}
	w := newJobWatch()
	lag := func(backlog int64, want time.Duration) {
		t.Helper()
		if got := w.measured(views, backlog, time.Time{}, now); got != want {
			t.Errorf("%v behind, want %v", got, want)
		}
		now = now.Add(time.Minute)
	}
	lag(5, 0) // nobody knows since when they wait
	lag(5, time.Minute)
	w.states["views"] = redisledger.JobState{Begun: now.Add(-time.Hour)}
	lag(5, time.Hour)
	lag(0, 0)
	lag(5, 0)
	lag(5, time.Minute)
	w.states["views"] = redisledger.JobState{Begun: now.Add(-time.Hour), Fresh: now.Add(-time.Second)}
	lag(5, time.Second)
}

func TestWhatIsAroundANodeIsCounted(t *testing.T) {
	asked := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	now := asked.Add(2 * time.Second)
	node := func(id, hash string, ago time.Duration) redislock.Node {
		n := redislock.Node{ID: id, SeenMS: now.Add(-ago).UnixMilli()}
		n.ConfigHash = hash
		return n
	}
	p := redislock.Picture{Now: now, Owner: "o", Leader: "a", Nodes: []redislock.Node{
		node("a", "1", 0), node("b", "1", 30*time.Second), node("c", "2", time.Second), node("d", "2", 2*time.Minute), node("e", "1", 25*time.Hour),
	}}
	p.Paused = &redislock.Pause{}
	s := surroundings(p, 2*time.Second, asked, asked.Add(time.Second))
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

func TestWhatIsLateStaysLateOnAllNodesWhenRedisDies(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *") // hardly ever
	l.do("HSET", "views", "1", "10", "2", "20")
	hourAgo := time.Now().Add(-time.Hour).UnixMilli()
	l.do("HSET", "{baton}:job:views", "consecutive_failures", "4", "begun", hourAgo, "last_slot", hourAgo)
	leader := l.start()
	other := l.config
	other.Node.ID = "b"
	standby := start(t, other, nil)
	tells := func(when string) {
		t.Helper()
		for name, r := range map[string]*running{"the leader": leader, "the standby": standby} {
			await(t, when+": "+name, func() bool {
				lag, _ := strconv.ParseFloat(r.metric(`baton_flush_lag_seconds{job="views"}`), 64)
				late, _ := strconv.ParseFloat(r.metric(`baton_job_overdue_seconds{job="views"}`), 64)
				return r.metric(`baton_job_consecutive_failures{job="views"}`) == "4" && r.metric(`baton_flush_backlog{job="views"}`) == "2" && lag >= 3600 && late >= 3600
			})
		}
	}
	tells("one leads")
	l.server.Kill()
	await(t, "nobody leads", func() bool {
		return leader.metric(`baton_leader{lock="baton"}`) == "0" && standby.metric(`baton_redis_up{lock="baton"}`) == "0"
	})
	tells("redis is gone")
}
