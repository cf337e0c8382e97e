package daemon

import (
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

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
			r.endsWell()
		})
	}
}
