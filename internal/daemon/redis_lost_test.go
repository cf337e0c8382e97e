package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/testsupport"
)

// refusing is a way in which a running Redis refuses all requests.
type refusing struct{ begin, finish func(*jobLab) }

func TestALossOfRedisIsOneLineHoweverManyJobsItStops(t *testing.T) {
	for code, c := range map[string]refusing{
		"MISCONF":  {func(l *jobLab) { l.server.FailSaves() }, func(l *jobLab) { l.server.HealSaves() }},
		"READONLY": {func(l *jobLab) { l.do("REPLICAOF", "127.0.0.1", 1) }, func(l *jobLab) { l.do("REPLICAOF", "NO", "ONE") }},
		"NOAUTH": {func(l *jobLab) {
			l.do("CONFIG", "SET", "requirepass", "another")
			l.do("AUTH", "another")
			l.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}, func(l *jobLab) { l.do("CONFIG", "SET", "requirepass", "") }},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			const jobs = 8
			l, r := busyLab(t, jobs)
			clock := testsupport.StartStopwatch(t)
			c.begin(l)
			told := func(message string) []recorder.LoggedEntry { return r.logs.FilterMessage(message).All() }
			await(t, "the cause to be told", func() bool {
				lost := told("redis unavailable, retrying")
				return len(lost) > 0 && lost[len(lost)-1].ContextMap()["cause"] == code
			})
			time.Sleep(5 * time.Second)                  // every job is due five times in this time
			before := len(told("redis available again")) // for example of a moment in which the machine stood still
			c.finish(l)
			await(t, "the return to be told", func() bool { return len(told("redis available again")) > before })
			if lost := told("redis unavailable, retrying"); len(lost) > 2 { // broken connections come before the reason for no new ones
				t.Errorf("%d lines of the loss: %v", len(lost), lost)
			}
			if f := told("redis available again")[before].ContextMap(); f["failed_attempts"].(int64) < jobs || f["jobs"] != int64(jobs) {
				t.Errorf("told of the return: %v", f)
			}
			// On a busy machine the doctor may make its first check only now. On a machine that stood still, the slots of that time have
			// passed, and each job reports this.
			stood := clock.Still() > 500*time.Millisecond
			lines := r.logs.Filter(func(e recorder.LoggedEntry) bool {
				return !strings.HasSuffix(e.LoggerName, "doctor") && !(stood && passedUnseen(e))
			})
			if warned := lines.FilterLevelExact(zapcore.WarnLevel).Len() + lines.FilterLevelExact(zapcore.ErrorLevel).Len(); warned > 3 || lines.Len() > 10 {
				r.tell()
				t.Errorf("%d warnings, %d lines for one loss", warned, lines.Len())
			}
			r.endsWell()
		})
	}
}

// passedUnseen reports whether the entry says that slots passed while the leader stood still.
func passedUnseen(e recorder.LoggedEntry) bool {
	f := e.ContextMap()
	return e.Message == "slots were not run" && f["reason"] == string(job.ReasonLate) && f["error"] == nil
}

// busyLab returns a node with jobs that have run, and with an empty log.
func busyLab(t *testing.T, jobs int) (*jobLab, *running) {
	l := newJobLab(t)
	for i := range jobs {
		l.job(fmt.Sprint("views", i), "@every 1s")
	}
	l.config.Election.TTL, l.config.Election.HeartbeatInterval = 20*time.Second, time.Second // renewals are soon overdue
	r := l.start()
	await(t, "every job to have run", func() bool {
		return !slices.ContainsFunc(l.config.Jobs, func(j config.Job) bool { return l.state(j.Name).LastRun == nil })
	})
	// A machine that stood still may have lost Redis for a moment.
	await(t, "Redis to be there", func() bool {
		return r.logs.FilterMessage("redis unavailable, retrying").Len() == r.logs.FilterMessage("redis available again").Len()
	})
	r.logs.TakeAll()
	return l, r
}
