package slots

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

const (
	nodes   = 5
	lease   = 2 * time.Second
	lockKey = "baton"
)

// locks are what is contended for: the nodes' own one first.
var locks = [...]string{lockKey, "east", "west"}

// lab is the installation. Its fields belong to the test's goroutine, except for what
// guards itself.
type lab struct {
	*nemesis.Record
	t          *testing.T
	work, file string // what jobs run, and what that writes
	jobs       []spec
	redis      *testsupport.Redis
	cluster    *cluster.Cluster
	ways       []*testsupport.Proxy // of each node to Redis
	keeper     *cluster.Supervisor
	nemesis    *nemesis.Nemesis
	generation int // of the configuration
	background sync.WaitGroup
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Record: &nemesis.Record{}, t: t, work: buildWork(t), jobs: mix()}
	l.file = newFile(t)
	l.redis = testsupport.StartRedis(t, testsupport.RedisAOF())
	for range nodes {
		l.ways = append(l.ways, l.redis.Proxy())
	}
	l.cluster = cluster.Start(t, cluster.Options{
		Nodes: nodes, TTL: lease, LockKey: lockKey, MayExit: true,
		RedisURLOf: func(i int) string { return l.redis.URLThrough(l.ways[i]) },
		JobsYAML:   jobsYAML(l.jobs, l.work, l.file, 0),
		TopYAML:    historyYAML,
	})
	l.keeper = cluster.Supervise(l.cluster, l)
	l.nemesis = &nemesis.Nemesis{Begin: l.begin, Tick: l.keeper.Tick, Log: &l.Timeline}
	l.cluster.Await(time.Minute, "somebody to lead for every lock", func() bool {
		for _, lock := range locks {
			if l.leader(lock) < 0 {
				return false
			}
		}
		return true
	})
	return l
}

// historyYAML keeps every entry.
const historyYAML = "history: {keep: 10000}\n"

// newFile is where commands append what they do.
func newFile(t testing.TB) string {
	file := filepath.Join(t.TempDir(), "starts.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// buildWork returns the path of the program that the jobs run. It is a variable of the
// package because a test binary has one process and many entry points.
var buildWork = testsupport.Program("baton/test/slots/work")

// leader is the node that leads for a lock as far as Redis tells, or -1: unlike the
// nodes' own answers this is never kept waiting by one that is frozen.
func (l *lab) leader(lock string) int {
	const patience = 200 * time.Millisecond
	c, err := redis.Dial("tcp", l.redis.Addr(), redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience))
	if err != nil {
		return -1
	}
	defer c.Close()
	owner, err := redis.String(c.Do("GET", lock))
	if err != nil {
		return -1
	}
	term, err := redis.StringMap(c.Do("HGETALL", "{"+lock+"}:term"))
	if err != nil || term["owner"] != owner {
		return -1
	}
	for i, n := range l.cluster.Nodes {
		if n.ID == term["node_id"] {
			return i
		}
	}
	return -1
}

// retire ends the nodes in order, which they must obey.
func (l *lab) retire() {
	for _, n := range l.cluster.Nodes {
		if n.Running() {
			n.Signal(syscall.SIGTERM)
		}
	}
	for _, n := range l.cluster.Nodes {
		if code := n.Wait(cluster.TermWithin); code != 0 {
			l.Wrong("%s was told to end and did with code %d", n.ID, code)
		}
	}
}

// evidence is what may tell why something was wrong.
func (l *lab) evidence() map[string]string {
	starts, err := os.ReadFile(l.file)
	if err != nil {
		l.t.Error(err)
	}
	files := map[string]string{"starts.jsonl": string(starts)}
	for _, n := range l.cluster.Nodes {
		files[n.ID+".log"] = n.Log()
	}
	for _, s := range l.jobs {
		text, err := l.historyText(s)
		if err != nil {
			text = err.Error()
		}
		files["history-"+s.name+".json"] = text
	}
	return files
}
