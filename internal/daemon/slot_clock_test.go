package daemon

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redislock"
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
			// The others hear of a leap as soon as it is found: nothing reads the list of nodes for minutes.
			server.StepClock(-2 * ahead)
			testsupport.Await(t, "the leap in the list of nodes", func() bool {
				nodes, err := redis.StringMap(conn.Do("HGETALL", "{baton}:nodes"))
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range nodes {
					var p redislock.Presence
					if err := json.Unmarshal([]byte(text), &p); err != nil {
						t.Fatal(err)
					}
					off := time.Duration(p.ClockMS)*time.Millisecond - 2*ahead
					return off.Abs() < soon
				}
				return false
			})
			r.endsWell()
		})
	}
}
