package daemon

import (
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"

	"baton/internal/testsupport"
)

// A host whose clock is off by an hour is still the one that leads. Its slots are those of
// Redis' clock, by which they are claimed: none stops, and none lies an hour ahead, where
// it would keep a host whose clock is right from the next ones.
func TestAHostWhoseClockIsWrongGoesByThatOfRedis(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testsupport.StartRedis(t, testsupport.RedisClock())
			server.StepClock(-ahead)
			r := startReloading(t, configFor(server.URL()))
			r.leads()
			r.reload(r.marking("report", "@every 1s", "0"))
			r.awaitMark("report begins", 3)
			conn := server.Conn()
			last, err := redis.String(conn.Do("HGET", "{baton}:job:report", "last_slot"))
			if err != nil {
				t.Fatal(err)
			}
			ms, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			clock, err := redis.Int64s(conn.Do("TIME"))
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Unix(clock[0], 0).Sub(time.UnixMilli(ms)); late < -time.Second || late > soon {
				t.Errorf("the last slot is %v before redis' time", late)
			}
			if n := r.logs.FilterMessageSnippet("slots come by the clock of redis").Len(); n != 1 {
				t.Errorf("it was told %d times", n)
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Jumps of the clock that slots come by are told, and cost: it stays what it is while the
// other one drifts, or is dated a little wrong.
func TestTheClockOfSlotsIsChangedWhereItMust(t *testing.T) {
	c := newSlotClock(zap.NewNop())
	for _, step := range []struct{ behind, want time.Duration }{
		{4 * time.Second, 0}, {-4 * time.Second, 0},
		{-time.Hour, -time.Hour}, {-time.Hour - 900*time.Millisecond, -time.Hour}, {-time.Hour - 2*time.Second, -time.Hour - 2*time.Second},
		{3 * time.Second, 0}, {time.Minute, time.Minute}, {5 * time.Second, 0},
	} {
		c.heard(step.behind)
		if got := time.Duration(c.behind.Load()); got != step.want {
			t.Errorf("%v behind: the clock is put forward by %v, want %v", step.behind, got, step.want)
		}
		if off := time.Until(c.now()) - step.want; off.Abs() > time.Second {
			t.Errorf("%v behind: it is off by %v", step.behind, off)
		}
	}
}
