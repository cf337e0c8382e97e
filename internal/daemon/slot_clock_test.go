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

// A host whose clock is off by an hour still leads. Its slots follow Redis' clock, by which slots are claimed. So no slot is left out,
// and no slot is an hour ahead, where it would keep a host with the right clock from claiming the next slots.
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
			if n := r.logs.FilterMessageSnippet("the schedule uses the clock of redis").Len(); n != 1 {
				t.Errorf("it was told %d times", n)
			}
			// The other nodes learn of a step of the clock as soon as it is found, because no node reads the list of nodes for minutes.
			server.StepClock(-2 * ahead)
			testsupport.Await(t, "the leap in the list of nodes", func() bool {
				nodes, err := redis.StringMap(conn.Do("HGETALL", "{baton}:nodes"))
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range nodes {
					var p redislock.NodeInfo
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
