package process

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// stamping is a command that ignores what can be ignored and leaves its like in its
// group, in a session of their own, and orphaned. Each of them writes the time every
// 10 ms, and whose epoch it belongs to.
const stamping = `trap '' TERM HUP INT
beat() { exec 9<> <(:); while :; do echo "$EPOCHREALTIME $BATON_EPOCH $1" >> "$STAMPS"; read -t 0.01 -u 9; done; }
export -f beat
beat child &
setsid bash -c 'beat session' &
(setsid bash -c 'beat orphan; :' &)
beat self
`

// stamps is a cluster whose leader runs such a command.
type stamps struct {
	*cluster.Cluster
	t       *testing.T
	server  *testsupport.Redis
	proxies []*testsupport.Proxy // one of each node
	conn    redis.Conn
	file    string
}

func newStamps(t *testing.T, lease, grace time.Duration) stamps {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { // the family of a node that was killed may stamp on for a moment
		testsupport.Await(t, "the last stamps", func() bool { return kin(t, "", filepath.Join(dir, "stamps")) == 0 })
	})
	script := filepath.Join(dir, "stamping")
	if err := os.WriteFile(script, []byte(stamping), 0o600); err != nil {
		t.Fatal(err)
	}
	s := stamps{t: t, server: testsupport.StartRedis(t), file: filepath.Join(dir, "stamps")}
	s.conn = s.server.Conn()
	const nodes = 2
	for range nodes {
		s.proxies = append(s.proxies, s.server.Proxy())
	}
	s.Cluster = cluster.Start(t, cluster.Options{
		Nodes: nodes, TTL: lease, LockKey: lockKey, MayExit: true,
		RedisURLOf: func(node int) string { return s.server.URLThrough(s.proxies[node]) },
		JobsYAML: fmt.Sprintf(`
- name: stubborn
  schedule: "@every 1s"
  grace: %v
  command: [/bin/bash, %q]
  env: {STAMPS: %q}
`, grace, script, s.file),
	})
	return s
}

// times reads when each member of an epoch's family was last heard of.
func (s stamps) times(epoch int64) map[string]time.Time {
	s.t.Helper()
	f, err := os.Open(s.file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	last := map[string]time.Time{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || words[1] != strconv.FormatInt(epoch, 10) {
			continue
		}
		seconds, micros, _ := strings.Cut(words[0], ".")
		n, err := strconv.ParseInt(seconds+micros, 10, 64)
		if err != nil {
			s.t.Fatalf("stamp %q: %v", lines.Text(), err)
		}
		last[words[2]] = time.UnixMicro(n)
	}
	return last
}

// begun waits until a whole family stamps, and returns its node, its node's place and its epoch.
func (s stamps) begun() (leader *cluster.Node, place int, epoch int64) {
	s.t.Helper()
	leader = s.AwaitLeader(soon)
	for i, n := range s.Nodes {
		if n == leader {
			place = i
		} else {
			s.Await(soon, n.ID+" to stand by", func() bool { return len(n.Lines("standing by")) > 0 })
		}
	}
	s.Await(soon, "a family that stamps", func() bool {
		text, err := redis.String(s.conn.Do("HGET", "{"+lockKey+"}:term", "epoch"))
		if err != nil {
			s.t.Fatal(err)
		}
		if epoch, err = strconv.ParseInt(text, 10, 64); err != nil {
			s.t.Fatal(err)
		}
		return len(s.times(epoch)) == 4
	})
	return leader, place, epoch
}

// ended checks that nobody of an epoch's family did anything after a time, and that nobody is left.
func (s stamps) ended(epoch int64, by time.Time, what string) {
	s.t.Helper()
	s.Await(soon, "the family to be gone", func() bool { return kin(s.t, strconv.FormatInt(epoch, 10), s.file) == 0 })
	var last time.Time
	for who, at := range s.times(epoch) {
		if at.After(by) {
			s.t.Errorf("%s stamped %v after %s", who, at.Sub(by), what)
		}
		if at.After(last) {
			last = at
		}
	}
	s.t.Logf("the last stamp was %v before %s", by.Sub(last), what)
}

// kin counts the living processes of an epoch's family, or of all, wherever they are now.
func kin(t *testing.T, epoch, file string) (n int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, _ := os.ReadFile(name) // empty for the dead
		env := "\x00" + string(text)
		if (epoch == "" || strings.Contains(env, "\x00BATON_EPOCH="+epoch+"\x00")) && strings.Contains(env, "\x00STAMPS="+file+"\x00") {
			n++
		}
	}
	return n
}

// won waits until another node leads, and returns when it was known to: at that
// moment nobody of the former family may be left.
func (s stamps) won(old *cluster.Node, epoch int64) time.Time {
	s.t.Helper()
	var began time.Time
	living := 0
	s.Await(soon, "a successor", func() bool {
		text, err := redis.String(s.conn.Do("HGET", "{"+lockKey+"}:term", "epoch"))
		if err != nil {
			s.t.Fatal(err)
		}
		if now, err := strconv.ParseInt(text, 10, 64); err != nil || now == epoch {
			return false
		}
		began, living = time.Now(), kin(s.t, strconv.FormatInt(epoch, 10), s.file)
		return true
	})
	if living > 0 {
		s.t.Errorf("%d processes of %s's command live when another node leads", living, old.ID)
	}
	return began
}

// However the leader's end comes, its command is dead before another node can lead.
func TestNothingOfACommandIsLeftWhenAnotherNodeLeads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(s stamps, leader *cluster.Node, place int)
	}{
		{"its redis hangs", func(s stamps, _ *cluster.Node, place int) { s.proxies[place].Hang() }},
		{"it is cut off", func(s stamps, _ *cluster.Node, place int) { s.proxies[place].Block() }},
		{"it is frozen", func(_ stamps, leader *cluster.Node, _ int) { leader.Freeze() }},
		{"it is killed", func(_ stamps, leader *cluster.Node, _ int) { leader.Kill() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStamps(t, ttl, time.Minute)
			leader, place, epoch := s.begun()
			c.end(s, leader, place)
			s.ended(epoch, s.won(leader, epoch), "another node led")
		})
	}
}

// With Redis itself frozen nobody can win; the lease ends all the same.
func TestNothingOfACommandIsLeftWhenTheLeaseEndsInAFrozenRedis(t *testing.T) {
	t.Parallel()
	s := newStamps(t, ttl, time.Minute)
	_, _, epoch := s.begun()
	s.server.Freeze()
	frozen := time.Now()
	s.ended(epoch, frozen.Add(ttl), "the lease can have ended")
	s.server.Thaw()
	s.AwaitLeader(soon)
}

// A lock that is taken away is somebody else's at once: all that can be done is to be quick.
func TestCommandIsEndedSoonAfterItsLockIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   []any
	}{
		{"another has it", []any{"SET", lockKey, "thief", "PX", untilLost.Milliseconds()}},
		{"it is deleted", []any{"DEL", lockKey}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStamps(t, untilLost, time.Second)
			_, place, epoch := s.begun()
			s.proxies[1-place].Block() // seen by who stands by, the loss would be Redis' own: the leader puts the lock back
			if _, err := s.conn.Do(c.do[0].(string), c.do[1:]...); err != nil {
				t.Fatal(err)
			}
			// The next renewal finds it, and the grace begins: the window that was trusted would go on for an hour.
			s.Await(soon, "the family to be gone", func() bool { return kin(t, strconv.FormatInt(epoch, 10), s.file) == 0 })
		})
	}
}
