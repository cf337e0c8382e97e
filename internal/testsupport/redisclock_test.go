package testsupport_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestSteppedRedisTellsAnotherTimeAndExpiresKeysByIt(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisClock())
	c := r.Conn()
	off := func() time.Duration {
		t.Helper()
		now, err := redis.Int64s(c.Do("TIME"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(time.Unix(now[0], now[1]*1000)).Round(time.Second)
	}
	pttl := func() time.Duration {
		t.Helper()
		ms, err := redis.Int64(c.Do("PTTL", "lease"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	if _, err := c.Do("SET", "lease", "1", "PX", 90*60*1000); err != nil {
		t.Fatal(err)
	}
	if off() != 0 || pttl().Round(time.Minute) != 90*time.Minute {
		t.Fatalf("before any step: clock off by %s, lease has %s", off(), pttl())
	}
	r.StepClock(time.Hour)
	if off() != time.Hour || pttl().Round(time.Minute) != 30*time.Minute {
		t.Fatalf("an hour ahead: clock off by %s, lease has %s", off(), pttl())
	}
	r.StepClock(-time.Hour - time.Second/2)
	if got := off(); got > -time.Hour || got < -time.Hour-2*time.Second {
		t.Fatalf("an hour behind: clock off by %s", got)
	}
	if got := pttl().Round(time.Minute); got != 150*time.Minute {
		t.Fatalf("an hour behind: lease has %s", got)
	}
	r.StepClock(2 * time.Hour)
	if got := pttl(); got != -2*time.Millisecond { // the reply of Redis if there is no such key
		t.Fatalf("two hours ahead the lease still has %s", got)
	}
	r.Restart()
	c = r.Conn()
	if off() != 2*time.Hour {
		t.Fatalf("after a restart the clock is off by %s", off())
	}
}
