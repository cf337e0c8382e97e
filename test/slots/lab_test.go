package slots

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	t          *testing.T
	program    string
	work, file string // what jobs run, and what that writes
	jobs       []spec
	redis      *testsupport.Redis
	cluster    *cluster.Cluster
	ways       []*testsupport.Proxy // of each node to Redis
	units      []*unit
	nemesis    *nemesis.Nemesis
	log        *nemesis.Timeline
	generation int // of the configuration
	cannotStop int // exits with code 4 after SIGSTOP
	background sync.WaitGroup

	mu     sync.Mutex
	wrongs []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, program: cluster.Build(t), work: buildWork(t), jobs: mix(), log: &nemesis.Timeline{}}
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
	for _, n := range l.cluster.Nodes {
		l.units = append(l.units, &unit{node: n})
	}
	l.nemesis = &nemesis.Nemesis{Begin: l.begin, Tick: l.supervise, Log: l.log}
	l.cluster.Await(15*time.Second, "somebody to lead for every lock", func() bool {
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

// works is the program of the jobs, built once a test process. It is a variable of the
// package because a test binary has one process and many entry points.
var works struct {
	once sync.Once
	path string
	err  error
}

// buildWork returns the path of the program that the jobs run.
func buildWork(t testing.TB) string {
	t.Helper()
	works.once.Do(func() { works.path, works.err = build("baton/test/slots/work", "work") })
	if works.err != nil {
		t.Fatalf("build what the jobs run: %v", works.err)
	}
	return works.path
}

// build builds a program of this module, with further arguments for the go command.
func build(pkg, name string, args ...string) (string, error) {
	dir, err := testsupport.SharedDir("slots")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	args = append(append([]string{"build", "-buildvcs=false"}, args...), "-o", path, pkg)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

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

// wrong notes what must not be. The test goes on: the rest may tell why.
func (l *lab) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.log.Add("WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs = append(l.wrongs, text)
}

// retire ends the nodes in order, which they must obey.
func (l *lab) retire() {
	for _, u := range l.units {
		if u.node.Running() {
			u.node.Signal(15)
		}
	}
	for _, u := range l.units {
		if code := u.node.Wait(termWithin); code != 0 {
			l.wrong("%s was told to end and did with code %d", u.node.ID, code)
		}
	}
}

// keep fails the test for what was wrong, and keeps what may tell why; always, if
// $CHAOS_KEEP is set.
func (l *lab) keep(seed uint64) {
	for _, w := range l.wrongs[:min(25, len(l.wrongs))] {
		l.t.Error(w)
	}
	if more := len(l.wrongs) - 25; more > 0 {
		l.t.Errorf("and %d more", more)
	}
	if !l.t.Failed() && os.Getenv("CHAOS_KEEP") == "" {
		return
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("baton-slots-%d-", seed))
	if err != nil {
		l.t.Error(err)
		return
	}
	starts, err := os.ReadFile(l.file)
	if err != nil {
		l.t.Error(err)
	}
	files := map[string]string{"timeline.txt": l.log.String(), "wrong.txt": strings.Join(l.wrongs, "\n"), "starts.jsonl": string(starts)}
	for _, u := range l.units {
		files[u.node.ID+".log"] = u.node.Log()
	}
	for _, s := range l.jobs {
		text, err := l.historyText(s)
		if err != nil {
			text = err.Error()
		}
		files["history-"+s.name+".json"] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			l.t.Error(err)
		}
	}
	l.t.Logf("CHAOS_SEED=%d replays these faults; logs, starts, histories and timeline are kept in %s", seed, dir)
}
