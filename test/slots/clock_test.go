package slots

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/goclock"
	"baton/internal/testsupport/nemesis"
)

// buildStepped returns the path of a baton whose wall clock can be stepped. It is a
// variable of the package because a test binary has one process and many entry points.
var buildStepped = testsupport.SteppedProgram("baton/cmd/baton")

// phase is for how long clocks are how far off.
type phase struct {
	host, redis time.Duration
	lasts       time.Duration
	// frozen: the leader is stopped meanwhile, as a host that sleeps.
	frozen bool
}

// jumped begins the line of the log in which a node tells that its clock was stepped.
const jumped = "the wall clock has jumped"

const (
	far = 2 * time.Hour
	// wrongFor is how long a clock is wrong, before it is put right.
	wrongFor = 5 * time.Second
	// rightFor is how long a node may take to notice that it was.
	rightFor = 14 * time.Second
)

// clockJobs have a deadline where they would run two hours of slots otherwise.
func clockJobs() []spec {
	const ms = time.Millisecond
	return []spec{
		{name: "latest", every: time.Second, catchUp: "latest", overlap: "forbid", work: "20ms", lasts: 20 * ms},
		{name: "rerun", every: 3 * time.Second, catchUp: "latest", overlap: "forbid", rerun: true, work: "200ms", lasts: 200 * ms},
		{name: "all", every: 2 * time.Second, catchUp: "all", deadline: time.Minute, overlap: "forbid", work: "20ms", lasts: 20 * ms},
		{name: "minute", every: time.Minute, schedule: "* * * * *", catchUp: "latest", overlap: "forbid", rerun: true, work: "100ms", lasts: 100 * ms},
		{name: "hour", every: time.Hour, schedule: "0 * * * *", catchUp: "all", overlap: "forbid", work: "20ms", lasts: 20 * ms},
	}
}

// Whatever is done to the clocks, no slot starts twice, and none is lost within its
// deadline: once the clocks are right, every slot is started or the history says why not.
func TestSlotsWhileWallClocksStep(t *testing.T) {
	_, seed, strict := nemesis.Asked(t, 0)
	cases := []struct {
		name   string
		phases []phase
	}{
		{"leader's clock ahead for a while", []phase{{host: far, lasts: wrongFor}, {lasts: rightFor}}},
		{"leader's clock behind for a while", []phase{{host: -far, lasts: wrongFor}, {lasts: rightFor}}},
		{"Redis' clock ahead for a while", []phase{{redis: far, lasts: wrongFor}, {lasts: rightFor}}},
		{"Redis' clock behind for a while", []phase{{redis: -far, lasts: wrongFor}, {lasts: rightFor}}},
		{"both ahead for good", []phase{{host: far, redis: far, lasts: rightFor}}},
		{"both behind for a while", []phase{{host: -far, redis: -far, lasts: wrongFor}, {lasts: rightFor}}},
		{"ahead, and then behind", []phase{{host: far, lasts: wrongFor}, {host: -far, lasts: wrongFor}, {lasts: rightFor}}},
		{"behind, and then ahead", []phase{{host: -far, lasts: wrongFor}, {host: far, lasts: wrongFor}, {lasts: rightFor}}},
		{"leader asleep for some slots", []phase{{frozen: true, lasts: 4 * time.Second}, {lasts: wrongFor}}},
	}
	if !strict { // the others' turn comes with other seeds
		t.Parallel()
		cases = cases[seed%uint64(len(cases)):][:1]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newClockLab(t).step(c.phases)
		})
	}
}

// clockLab is two nodes and a Redis, each with a clock of its own.
type clockLab struct {
	*lab
	clocks []string // the files of the nodes' clocks
}

func newClockLab(t *testing.T) *clockLab {
	t.Helper()
	l := &clockLab{lab: &lab{Record: &nemesis.Record{}, t: t, work: buildWork(t), jobs: clockJobs(), file: newFile(t)}}
	l.redis = testsupport.StartRedis(t, testsupport.RedisAOF(), testsupport.RedisClock())
	dir := t.TempDir()
	for i := range 2 {
		l.clocks = append(l.clocks, filepath.Join(dir, fmt.Sprintf("clock%d", i)))
		l.ground(goclock.Step(l.clocks[i], 0))
	}
	l.cluster = cluster.Start(t, cluster.Options{
		// The lease is longer than a sleep: the leader wakes up as one.
		Nodes: len(l.clocks), TTL: 12 * time.Second, LockKey: lockKey, RedisURL: l.redis.URL(), Program: buildStepped(t),
		ElectionYAML: "heartbeat_interval: 500ms\nattempt_timeout: 500ms\n",
		JobsYAML:     jobsYAML(l.jobs, l.work, l.file, 0), TopYAML: historyYAML,
		EnvOf: func(i int) []string { return []string{goclock.Env + "=" + l.clocks[i]} },
	})
	l.cluster.Await(time.Minute, "somebody to lead", func() bool { return l.leader(lockKey) >= 0 })
	return l
}

// step steps the clocks of the leader and of Redis, phase by phase, and judges.
func (l *clockLab) step(phases []phase) {
	e := evidence{jobs: l.jobs, from: time.Now().Add(time.Second)}
	time.Sleep(3500 * time.Millisecond)
	leader := -1
	l.cluster.Await(time.Minute, "a node to lead before anything is done", func() bool { leader = l.leader(lockKey); return leader >= 0 })
	for _, p := range phases {
		l.redis.StepClock(p.redis)
		l.ground(goclock.Step(l.clocks[leader], p.host))
		if p.frozen {
			l.cluster.Nodes[leader].Freeze()
		}
		time.Sleep(p.lasts)
		if p.frozen {
			l.cluster.Nodes[leader].Thaw()
		}
	}
	e.until = time.Now().Add(phases[len(phases)-1].host - 2*time.Second)
	log := l.cluster.Nodes[leader].Log()
	// Redis, stepped too, may have ended the lease first. A term that begins later has seen no jump.
	noticed := strings.Contains(log, jumped) || phases[0].redis != 0 && strings.Contains(log, "this node no longer holds the lock")
	for _, p := range phases {
		if p.host != 0 && !noticed {
			l.Wrong("the leader has not noticed that its clock was stepped: its log has no %q", jumped)
		}
	}
	for _, n := range l.cluster.Nodes {
		if code := n.Terminate(cluster.TermWithin); code != 0 {
			l.Wrong("%s was told to end and did with code %d", n.ID, code)
		}
	}
	l.judge(e)
}

func (l *clockLab) judge(e evidence) {
	var err error
	if e.runs, err = readStarts(l.file); err != nil {
		l.t.Fatal(err)
	}
	for i := range e.runs {
		e.runs[i].at = e.runs[i].slot // what the machine's clock says is another matter here
	}
	for _, s := range l.jobs {
		entries, err := l.history(s)
		if err != nil {
			l.t.Fatal(err)
		}
		e.entries = append(e.entries, entries...)
	}
	nemesis.Fail(l.t, slices.Concat(l.Wrongs(), once(e), accounted(e), alone(e), truthful(e), within(e)))
	if l.t.Failed() {
		for _, s := range l.jobs {
			text, err := l.historyText(s)
			l.t.Logf("history of %s (%v):\n%s", s.name, err, text)
		}
		if text, err := os.ReadFile(l.file); err == nil && os.Getenv("CHAOS_KEEP") != "" {
			l.t.Logf("starts:\n%s", text)
		}
	}
}

// within: a job that catches up on all slots loses none that is within its deadline, and
// one that catches up on the latest has run it. What is within the last minute of the
// test is. On a busy machine a run may begin so late that it takes the next slot.
func within(e evidence) (wrong []string) {
	for _, s := range e.jobs {
		runs, entries := e.of(s.name)
		ran := map[int64]bool{}
		for _, r := range runs {
			ran[r.slot.UnixMilli()] = true
		}
		excused := map[int64]bool{} // only the slot after one that ran
		for _, h := range entries {
			if h.reason == "overlap" && h.count == 1 && ran[h.slot.Add(-s.every).UnixMilli()] {
				excused[h.slot.UnixMilli()] = true
			}
		}
		slots := s.slotsBetween(e.from, e.until)
		for i, at := range slots {
			due := i == len(slots)-1 || s.catchUp == "all" && (s.deadline == 0 || e.until.Sub(at) < s.deadline/2)
			if due && s.catchUp != "none" && !ran[at.UnixMilli()] && !excused[at.UnixMilli()] {
				wrong = append(wrong, fmt.Sprintf("%s: slot %s is lost, within its deadline", s.name, slotTime(at)))
			}
		}
	}
	return wrong
}
