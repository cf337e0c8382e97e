package hosts

import (
	"strings"
	"testing"
	"time"
)

// at is a moment of the evidence that is made up here.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// sound is evidence of h1 that led, was cut off and was succeeded by h2.
func sound() evidence {
	pulse := func(host, run string, epoch int64, began, until float64) act {
		a := act{host: host, run: run, lock: lockKey, job: "pulse", epoch: epoch, attempt: "1", began: at(began), alive: at(until)}
		for s := began; s <= until; s += 0.01 {
			a.beats = append(a.beats, at(s))
		}
		return a
	}
	e := evidence{
		from: at(0.5), until: at(9.5),
		strikes: []strike{{fault: fault{kind: kindOf("leader | Redis")}, target: "h1", begun: at(3), ended: at(6)}},
		took: []taking{
			{"articles", "h1", 5, at(0)}, {"orders", "h1", 5, at(0)}, {"visits", "h1", 5, at(0)},
			{"articles", "h2", 6, at(5)}, {"orders", "h2", 6, at(5)}, {"visits", "h2", 6, at(5)},
		},
		wrote: map[string][]write{},
		want:  map[string]map[string]int64{}, got: map[string]map[string]int64{},
		acts: []act{pulse("h1", "a", 5, 0, 4.5), pulse("h2", "b", 6, 5, 10)},
	}
	for _, table := range tables {
		e.wrote[table] = []write{{"h1", at(1)}, {"h1", at(4)}, {"h2", at(5.1)}}
		e.want[table] = map[string]int64{"000-1": 3, "001-1": 4}
		e.got[table] = map[string]int64{"000-1": 3, "001-1": 4}
	}
	for _, job := range []string{"tick", "other"} {
		lock, epoch := lockKey, int64(5)
		if job == "other" {
			lock, epoch = eastLock, 9
		}
		for s := range 10 {
			slot := at(float64(s))
			switch {
			case s == 4:
				e.entries = append(e.entries, entry{job: job, reason: "no leader", first: slot, slot: slot, count: 1})
				continue
			case s > 4:
				epoch = 6 + epoch/9*9
			}
			e.entries = append(e.entries, entry{job: job, state: "succeeded", slot: slot})
			e.acts = append(e.acts, act{host: "h", run: slot.String() + job, lock: lock, job: job, epoch: epoch, slot: slot, began: slot.Add(10 * ms), alive: slot.Add(300 * ms)})
		}
	}
	return e
}

func TestNetworkJudgeFindsWhatIsWrong(t *testing.T) {
	if wrong := sound().judge(0); len(wrong) > 0 {
		t.Fatalf("sound evidence is found wrong: %q", wrong)
	}
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string
	}{
		"a child outlives its term": {func(e *evidence) { e.acts[0].alive = at(5.001) }, "promise 1"},
		"a command beside the successor's fence": {func(e *evidence) {
			e.acts[0].alive = at(4.9)
			e.took[3].at = at(4.8)
			e.wrote["articles"] = e.wrote["articles"][:1]
		}, "promise 1"},
		"two hosts have the other lock at a time":    {func(e *evidence) { e.acts[len(e.acts)-5].epoch = 99 }, "promise 1, lock east"},
		"a deposed leader commits":                   {func(e *evidence) { e.wrote["orders"][2] = write{"h1", at(5.1)} }, "promise 2: h1 wrote to orders"},
		"a successor writes before it has the fence": {func(e *evidence) { e.wrote["visits"][1] = write{"h2", at(4)} }, "promise 2: h2 wrote to visits"},
		"a fence goes back":                          {func(e *evidence) { e.took[5].epoch = 4 }, "promise 2: the fence"},
		"a row is lost":                              {func(e *evidence) { delete(e.got["visits"], "001-1") }, "visits: 4 lost, 0 twice"},
		"an increment comes twice":                   {func(e *evidence) { e.got["articles"]["000-1"]++ }, "articles: 0 lost, 1 twice"},
		"a row that nobody wrote":                    {func(e *evidence) { e.got["orders"]["x"] = 1 }, "orders: 0 lost, 1 twice"},
		"a dead letter":                              {func(e *evidence) { e.dead = []string{"orders: refused"} }, "dead letter of orders"},
		"a slot starts twice":                        {func(e *evidence) { e.acts = append(e.acts, e.acts[4]) }, "was started 2 times"},
		"a slot is forgotten": {func(e *evidence) {
			e.entries = append(e.entries[:4:4], e.entries[5:]...)
		}, "does not say why"},
		"a slot is started and missed": {func(e *evidence) {
			e.entries = append(e.entries, entry{job: "tick", reason: "x", first: at(2), slot: at(2), count: 1})
		}, "says that it was missed"},
		"a run is not in the history": {func(e *evidence) { e.entries = append(e.entries[:2:2], e.entries[3:]...) }, "does not know it"},
		"no node leads after the fault": {func(e *evidence) {
			e.acts[1].beats = []time.Time{at(6).Add(lease + ms)}
		}, "promise 5"},
	} {
		e := sound()
		c.spoil(&e)
		if wrong := strings.Join(e.judge(0), "\n"); !strings.Contains(wrong, c.want) {
			t.Errorf("%s: found %q, want %q", name, wrong, c.want)
		}
	}
	e := sound()
	if without := e.leaderless(at(3), at(8)); without.Round(10*ms) != 500*ms {
		t.Errorf("between 4.5 and 5 s no node leads, and %v are found", without)
	}
	if lost, twice := e.difference("articles", "001-"); lost+twice != 0 || e.moved(at(3), at(8)) != 1 {
		t.Errorf("the tally finds %d lost, %d twice, %d moves", lost, twice, e.moved(at(3), at(8)))
	}
}
