package daemon

import (
	"strconv"
	"testing"
	"time"
)

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
	await(t, "no node leads", func() bool {
		return leader.metric(`baton_leader{lock="baton"}`) == "0" && standby.metric(`baton_redis_up{lock="baton"}`) == "0"
	})
	tells("redis is gone")
}
