package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
)

// stubborn is a command that ignores what can be ignored, and leaves children in
// its group, in a session of their own, and orphaned.
const stubborn = `trap '' TERM HUP INT
sleep 1000 &
setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &
(setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &)
sleep 0.1; echo x > began; while :; do sleep 0.02; done`

// family counts the living processes of the command that holds a lock, wherever
// they are now, by their environment.
func family(t *testing.T, lock string) (n int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, _ := os.ReadFile(name) // empty for the dead
		comm, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "comm"))
		if strings.Contains("\x00"+string(text), "\x00BATON_LOCK_KEY="+lock+"\x00") && (string(comm) == "sh\n" || string(comm) == "sleep\n") {
			n++
		}
	}
	return n
}

// outlives watches Redis and the family until both the lock and the family are
// gone, and fails if anybody of the family was seen when the lock was not.
func (l *locks) outlives(lock, owner string) {
	l.t.Helper()
	testsupport.Await(l.t, "the lock and the command's family to be gone", func() bool {
		// In this order: what lives after the lock was seen to be gone, lives too long.
		held := l.owner(lock) == owner
		living := family(l.t, lock)
		if !held && living > 0 {
			l.t.Fatalf("%d processes live although the lease has ended", living)
		}
		return !held
	})
}

// uniqueLock is a name that no other test uses: processes are found by it.
func uniqueLock(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// begun starts a stubborn command, and returns when it runs.
func (l *locks) begun(lease time.Duration, url, lock string) (p *locker, owner string) {
	l.t.Helper()
	p = l.lock("--ttl", lease.String(), "--redis", url, lock, "-c", stubborn)
	l.file("began")
	testsupport.Await(l.t, "the command's family", func() bool { return family(l.t, lock) >= 5 })
	return p, l.owner(lock)
}

func TestTheCommandIsDeadBeforeTheLeaseEndsThoughRedisHangs(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	l, proxy, lock := newLocks(t, r), r.Proxy(), uniqueLock(t)
	p, owner := l.begun(ttl, r.URLThrough(proxy), lock)
	proxy.Hang()
	l.outlives(lock, owner)
	p.want(lost, "", "trust window") // closed; or, on a busy machine, the process was ended by it
}

// The thief is in at once: all that can be done is to be quick.
func TestTheCommandIsEndedSoonAfterTheLockIsStolen(t *testing.T) {
	t.Parallel()
	l, lock := newLocks(t, testsupport.StartRedis(t)), uniqueLock(t)
	p, _ := l.begun(untilLost, l.url, lock) // the next renewal finds it: the lease itself would have gone on
	if _, err := l.conn.Do("SET", lock, "thief", "PX", untilLost.Milliseconds()); err != nil {
		t.Fatal(err)
	}
	testsupport.Await(t, "the command's family to be dead", func() bool { return family(t, lock) == 0 })
	p.want(lost, "", "was lost (lease lost): the command was ended")
	if owner := l.owner(lock); owner != "thief" {
		t.Errorf("the thief's lock is %q now", owner)
	}
}

func TestTheCommandIsDeadBeforeTheLeaseEndsThoughBatonIsKilled(t *testing.T) {
	t.Parallel()
	l, lock := newLocks(t, testsupport.StartRedis(t)), uniqueLock(t)
	p, owner := l.begun(ttl, l.url, lock)
	p.signal(syscall.SIGKILL)
	l.outlives(lock, owner)
}

func TestTheCommandIsDeadBeforeTheLeaseEndsThoughBatonIsStopped(t *testing.T) {
	t.Parallel()
	l, lock := newLocks(t, testsupport.StartRedis(t)), uniqueLock(t)
	p, owner := l.begun(ttl, l.url, lock)
	p.signal(syscall.SIGSTOP)
	l.outlives(lock, owner)
	p.signal(syscall.SIGCONT)
	p.want(lost, "", "lost")
}

// Of several locks the first that is lost ends the command, and all are given back.
func TestTheLossOfAnyLockEndsTheCommand(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	for _, stolen := range []string{"a", "b", "c"} {
		p := l.lock("--ttl", untilLost.String(), "a", "b", "c", "-c", "echo x > "+stolen+"; exec sleep 1000")
		l.file(stolen)
		if _, err := l.conn.Do("SET", stolen, "thief", "PX", 60_000); err != nil {
			t.Fatal(err)
		}
		p.want(lost, "", fmt.Sprintf("lock %q was lost", stolen))
		for _, name := range []string{"a", "b", "c"} {
			if owner := l.owner(name); name != stolen && owner != "" {
				t.Errorf("%s was stolen, and %s is still held by %s", stolen, name, owner)
			}
		}
		if _, err := l.conn.Do("DEL", stolen); err != nil {
			t.Fatal(err)
		}
	}
}
