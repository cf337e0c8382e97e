package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/job"
	"baton/internal/redisconn"
)

// recorded returns an outage and its recorded log lines.
func recorded() (*Outage, *recorder.ObservedLogs) {
	core, logs := recorder.New(zapcore.InfoLevel)
	return New(zap.New(core)), logs
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
				o.Tried(fmt.Sprint("job", i), fmt.Errorf("claim: %w", errFull))
			}
			time.Sleep(5900 * time.Millisecond)
		}
		o.Tried("job1", nil)
		o.Tried("job2", nil)
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
		// Short outages that follow one another are reported once a minute.
		for _, told := range []int{2, 0, 0} {
			o.Tried("job1", errFull)
			o.Tried("job1", nil)
			time.Sleep(10 * time.Second)
			if got := lines(logs); len(got) != told {
				t.Errorf("got %q, want %d lines", got, told)
			}
		}
		time.Sleep(2 * time.Minute)
		o.Tried("job1", errFull)
		time.Sleep(2 * repeatAfter)
		o.Close()
		if got := lines(logs); len(got) != 2 || got[1] != "redis is no longer retried: this node needs no answer from it now: <nil>, 1 attempts, 1 jobs" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnOutageIsOverWhenNothingFailsAndNoElectionIsInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		o.Lost("a", errFull)
		o.Lost("b", errFull)
		o.NotRenewed()
		o.Back("a")
		time.Sleep(10 * time.Second)
		if got := lines(logs); !slices.Equal(got, []string{"redis unavailable, retrying: OOM, 1 attempts, 0 jobs"}) {
			t.Errorf("got %q", got)
		}
		o.Back("b")
		o.Tried("j", errFull) // some commands are still refused
		time.Sleep(10 * time.Second)
		if got := lines(logs); len(got) != 0 {
			t.Errorf("got %q", got)
		}
		o.Tried("j", nil)
		time.Sleep(10 * time.Second)
		if got := lines(logs); !slices.Equal(got, []string{"redis available again: <nil>, 4 attempts, 1 jobs"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A full server refuses some commands and accepts others, so the outage is not over with the first command that succeeds.
func TestAnOutageGoesOnWhileOthersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(quietFor / 4) {
			o.Tried("writes", errFull)
			o.Tried("reads", nil)
		}
		if got := lines(logs); !slices.Equal(got, []string{"redis unavailable, retrying: OOM, 1 attempts, 1 jobs"}) {
			t.Errorf("while others fail: %q", got)
		}
		o.Tried("writes", errFull) // and the last command fails, so no command has succeeded since
		time.Sleep(10 * time.Second)
		if got := lines(logs); len(got) != 0 {
			t.Errorf("after a failure: %q", got)
		}
		o.Tried("reads", nil)
		time.Sleep(10 * time.Second)
		if got := lines(logs); !slices.Equal(got, []string{"redis available again: <nil>, 21 attempts, 1 jobs"}) {
			t.Errorf("once nothing fails: %q", got)
		}
	})
}

func TestAnOutageCountsTheJobsThatWereHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, logs := recorded()
		defer o.Close()
		o.Tried("before", job.ErrHeldBack)
		if !o.since.IsZero() {
			t.Error("a start that was held back began an outage")
		}
		o.Tried("a", errFull)
		o.Tried("b", fmt.Errorf("claim: %w", job.ErrHeldBack))
		o.Tried("a", nil)
		time.Sleep(10 * time.Second)
		if !o.Lasts() {
			t.Error("what the outage held back is reported after it, and each job would log it")
		}
		time.Sleep(repeatAfter)
		if o.Lasts() {
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
		defer o.Close()
		fail := func(err error, lasts time.Duration) {
			for began := time.Now(); time.Since(began) < lasts; time.Sleep(300 * time.Millisecond) {
				o.Tried("j", err)
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
	defer o.Close()
	for _, err := range []error{
		nil, context.Canceled, errors.New("exit code 1"), redis.Error("WRONGTYPE Operation against a key"), redis.Error("NOPERM no permissions"),
		redis.Error("MOVED 1 127.0.0.1:1"), io.EOF, &net.OpError{Op: "dial", Err: errors.New("refused")}, // of a database, for example
	} {
		if o.Tried("j", err); o.Explains(err) || redisconn.Unavailable(err) != "" {
			t.Errorf("%v is taken for Redis' fault", err)
		}
	}
	if logs.Len() != 0 || !o.since.IsZero() {
		t.Errorf("%q", lines(logs))
	}
	var none *Outage
	none.Tried("j", errFull)
	none.Lost("l", errFull)
	none.Back("l")
	none.NotRenewed()
	none.Close()
	if none.Explains(errFull) {
		t.Error("none explains something")
	}
}
