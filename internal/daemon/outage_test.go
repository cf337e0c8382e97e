package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// recorded is an outage whose lines are kept.
func recorded() (*outage, *recorder.ObservedLogs) {
	core, logs := recorder.New(zapcore.InfoLevel)
	return newOutage(zap.New(core)), logs
}

func lines(logs *recorder.ObservedLogs) (all []string) {
	for _, l := range logs.TakeAll() {
		f := l.ContextMap()
		all = append(all, fmt.Sprintf("%s: %v, %v attempts, %v jobs", l.Message, f["cause"], f["failed_attempts"], f["jobs"]))
	}
	return all
}

var errFull = redis.Error("OOM command not allowed when used memory > 'maxmemory'.")

func TestAnOutageIsToldOnceForAllJobsAndEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		began := time.Now()
		for time.Since(began) < 175*time.Second {
			for i := range 10 {
				o.tried(fmt.Sprint("job", i), fmt.Errorf("claim: %w", errFull))
			}
			time.Sleep(5900 * time.Millisecond)
		}
		o.tried("job1", nil)
		o.tried("job2", nil)
		time.Sleep(10 * time.Second)
		want := []string{
			"redis unavailable, retrying: OOM, 1 attempts, 1 jobs",
			"redis still unavailable, retrying: OOM, 110 attempts, 10 jobs",
			"redis still unavailable, retrying: OOM, 210 attempts, 10 jobs",
			"redis available again: <nil>, 300 attempts, 10 jobs",
		}
		if got := lines(logs); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		// Short ones that come one after the other are told once a minute.
		for _, told := range []int{2, 0, 0} {
			o.tried("job1", errFull)
			o.tried("job1", nil)
			time.Sleep(10 * time.Second)
			if got := lines(logs); len(got) != told {
				t.Errorf("got %q, want %d lines", got, told)
			}
		}
		time.Sleep(2 * time.Minute)
		o.tried("job1", errFull)
		time.Sleep(2 * outageAgain)
		o.close()
		if got := lines(logs); len(got) != 2 || got[1] != "redis no longer tried: this node has nothing to ask of it: <nil>, 1 attempts, 1 jobs" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnOutageIsOverWhenNothingFailsAndNoElectionIsInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		o.lost("a", errFull)
		o.lost("b", errFull)
		o.notRenewed()
		o.back("a")
		time.Sleep(10 * time.Second)
		if got := lines(logs); !slices.Equal(got, []string{"redis unavailable, retrying: OOM, 1 attempts, 0 jobs"}) {
			t.Errorf("got %q", got)
		}
		o.back("b")
		o.tried("j", errFull) // some commands are refused still
		time.Sleep(10 * time.Second)
		if got := lines(logs); len(got) != 0 {
			t.Errorf("got %q", got)
		}
		o.tried("j", nil)
		time.Sleep(10 * time.Second)
		if got := lines(logs); !slices.Equal(got, []string{"redis available again: <nil>, 4 attempts, 1 jobs"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnOutageCountsTheJobsThatWereHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		defer o.close()
		o.tried("before", job.ErrHeldBack)
		if !o.since.IsZero() {
			t.Error("a start that was held back began an outage")
		}
		o.tried("a", errFull)
		o.tried("b", fmt.Errorf("claim: %w", job.ErrHeldBack))
		o.tried("a", nil)
		time.Sleep(10 * time.Second)
		if !o.lasts() {
			t.Error("what the outage held back is reported after it, and each job would log it")
		}
		time.Sleep(outageAgain)
		if o.lasts() {
			t.Error("an outage lasts that was over a minute ago")
		}
		want := []string{"redis unavailable, retrying: OOM, 1 attempts, 1 jobs", "redis available again: <nil>, 1 attempts, 2 jobs"}
		if got := lines(logs); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnotherCauseIsToldWhenItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		defer o.close()
		fail := func(err error, lasts time.Duration) {
			for began := time.Now(); time.Since(began) < lasts; time.Sleep(300 * time.Millisecond) {
				o.tried("j", err)
			}
		}
		fail(errFull, 10*time.Second)
		fail(redis.Error("LOADING Redis is loading the dataset in memory"), time.Second)
		fail(redis.Error("NOAUTH Authentication required."), 20*time.Second)
		var causes []any
		for _, l := range logs.TakeAll() {
			causes = append(causes, l.ContextMap()["cause"])
		}
		if !slices.Equal(causes, []any{"OOM", "NOAUTH"}) {
			t.Errorf("causes %v", causes)
		}
	})
}

func TestWhatIsAJobsOwnFaultIsNoOutage(t *testing.T) {
	o, logs := recorded()
	defer o.close()
	for _, err := range []error{
		nil, context.Canceled, errors.New("exit code 1"), redis.Error("WRONGTYPE Operation against a key"), redis.Error("NOPERM no permissions"),
		redis.Error("MOVED 1 127.0.0.1:1"), io.EOF, &net.OpError{Op: "dial", Err: errors.New("refused")}, // a database's, say
	} {
		if o.tried("j", err); o.explains(err) || redisconn.Unavailable(err) != "" {
			t.Errorf("%v is taken for Redis' fault", err)
		}
	}
	if logs.Len() != 0 || !o.since.IsZero() {
		t.Errorf("%q", lines(logs))
	}
	var none *outage
	none.tried("j", errFull)
	none.lost("l", errFull)
	none.back("l")
	none.notRenewed()
	none.close()
	if none.explains(errFull) {
		t.Error("none explains something")
	}
}

// refusing is a way in which a Redis that is there serves nobody.
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
			time.Sleep(5 * time.Second)                  // every job is due five times
			before := len(told("redis available again")) // of a moment in which the machine stood still, say
			c.finish(l)
			await(t, "the return to be told", func() bool { return len(told("redis available again")) > before })
			if lost := told("redis unavailable, retrying"); len(lost) > 2 { // that connections break comes before why there are no new ones
				t.Errorf("%d lines of the loss: %v", len(lost), lost)
			}
			if f := told("redis available again")[before].ContextMap(); f["failed_attempts"].(int64) < jobs || f["jobs"] != int64(jobs) {
				t.Errorf("told of the return: %v", f)
			}
			// On a busy machine the doctor may take its first look only now; and on one that stood still
			// the slots of that time have passed, which each job tells.
			stood := clock.Still() > 500*time.Millisecond
			lines := r.logs.Filter(func(e recorder.LoggedEntry) bool {
				return !strings.HasSuffix(e.LoggerName, "doctor") && !(stood && passedUnseen(e))
			})
			if warned := lines.FilterLevelExact(zapcore.WarnLevel).Len() + lines.FilterLevelExact(zapcore.ErrorLevel).Len(); warned > 3 || lines.Len() > 10 {
				r.tell()
				t.Errorf("%d warnings, %d lines for one loss", warned, lines.Len())
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// passedUnseen: slots passed while the leader stood still.
func passedUnseen(e recorder.LoggedEntry) bool {
	f := e.ContextMap()
	return e.Message == "slots were not run" && f["reason"] == string(job.ReasonLate) && f["error"] == nil
}

// busyLab has jobs that have run, and a log that is empty.
func busyLab(t *testing.T, jobs int) (*jobLab, *running) {
	l := newJobLab(t)
	for i := range jobs {
		l.job(fmt.Sprint("views", i), "@every 1s")
	}
	l.config.Election.TTL, l.config.Election.HeartbeatInterval = 20*time.Second, time.Second // soon overdue
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
