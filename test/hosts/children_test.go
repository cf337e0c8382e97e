package hosts

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	lab "baton/internal/testsupport/hosts"
)

// stubborn ignores what can be ignored, and leaves its like in its group, in a session
// of its own, and orphaned. Each of them writes the time every few milliseconds, and
// whose epoch it belongs to.
const stubborn = `trap '' TERM HUP INT
beat() { exec 9<> <(:); while :; do echo "$EPOCHREALTIME $BATON_EPOCH $1" >> "$STAMPS"; read -t 0.003 -u 9; done; }
export -f beat
beat child &
setsid bash -c 'beat session' &
(setsid bash -c 'beat orphan; :' &)
beat self
`

const (
	stubbornPath = "/opt/stubborn"
	stampsPath   = "/var/lib/baton/stamps"
	stubbornJob  = `jobs:
- name: stubborn
  schedule: "@every 1s"
  grace: 2s
  command: [/bin/bash, ` + stubbornPath + `]
  env: {STAMPS: ` + stampsPath + `}
`
)

// However a leader ends, what its jobs have started is dead before the lock is free, also
// what ignores TERM and has left its group and session.
func TestWhatAJobHasStartedIsDeadBeforeTheLockIsReleased(t *testing.T) {
	s := newSite(t, plan{dropIn: "[Service]\nWatchdogSec=3s\n", config: stubbornJob})
	for _, h := range s.hosts {
		h.Write(stubbornPath, stubborn)
	}
	ends := []struct {
		what string
		end  func(h *lab.Host, pid int)
	}{
		{"kill -9", func(h *lab.Host, pid int) { h.Signal(pid, syscall.SIGKILL) }},
		{"systemctl stop", func(h *lab.Host, _ int) { h.Must("systemctl", "stop", unit); h.Must("systemctl", "start", unit) }},
		{"the watchdog", func(h *lab.Host, pid int) { h.Signal(pid, syscall.SIGSTOP) }},
		{"systemctl restart", func(h *lab.Host, _ int) { h.Must("systemctl", "restart", unit) }},
	}
	for _, e := range ends {
		leader := s.settled()
		epoch, old, pid := s.epoch(), s.owner(), leader.MainPid(unit)
		s.Await("a family that stamps", func() bool { return len(stamps(t, leader, epoch)) == 4 })
		e.end(leader, pid)
		s.successor(old)
		released := s.releasedAt(epoch)
		s.settled()
		last := stamps(t, leader, epoch)
		// Read twice: nobody of them may write any more.
		time.Sleep(100 * time.Millisecond)
		var latest time.Time
		for who, at := range stamps(t, leader, epoch) {
			if at.After(last[who]) || at.After(released) {
				t.Errorf("%s: %s stamped %v after the lock was released", e.what, who, at.Sub(released))
			}
			if at.After(latest) {
				latest = at
			}
		}
		note("%-66s %3d  %v before", e.what+": the last stamp of a child that ignores TERM, and the release", 1, round(released.Sub(latest)))
		if left := leader.Shell("grep -l BATON_EPOCH=" + strconv.FormatInt(epoch, 10) + " /proc/[0-9]*/environ 2>/dev/null || :"); left != "" {
			t.Errorf("%s: processes of the job are alive: %s", e.what, left)
		}
	}
}

// stamps is when each member of an epoch's family was last heard of.
func stamps(t *testing.T, h *lab.Host, epoch int64) map[string]time.Time {
	t.Helper()
	text := h.Shell(`tac ` + stampsPath + ` 2>/dev/null | awk '$2 == ` + strconv.FormatInt(epoch, 10) + ` && NF == 3 && !seen[$3]++' || :`)
	last := map[string]time.Time{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		seconds, micros, _ := strings.Cut(words[0], ".")
		n, err := strconv.ParseInt(seconds+micros, 10, 64)
		if err != nil {
			t.Fatalf("stamp %q: %v", line, err)
		}
		last[words[2]] = time.UnixMicro(n)
	}
	return last
}

// releasedAt is when a term's lock was released, by the events in Redis: one clock tells
// all times here. It is rounded up to the millisecond.
func (s *site) releasedAt(epoch int64) time.Time { s.t.Helper(); return s.releasedAtOf(lockKey, epoch) }

func (s *site) releasedAtOf(lock string, epoch int64) (at time.Time) {
	s.t.Helper()
	s.Await("the release in the history", func() bool {
		entries, err := redis.Values(s.conn.Do("XREVRANGE", "{"+lock+"}:events", "+", "-", "COUNT", 10))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, entry := range entries {
			pair := entry.([]any)
			fields, err := redis.StringMap(pair[1], nil)
			if err != nil {
				s.t.Fatal(err)
			}
			if fields["epoch"] != strconv.FormatInt(epoch, 10) || fields["event"] != "released" {
				continue
			}
			ms, _, _ := strings.Cut(string(pair[0].([]byte)), "-")
			n, err := strconv.ParseInt(ms, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			at = time.UnixMilli(n + 1)
			return true
		}
		return false
	})
	return at
}
