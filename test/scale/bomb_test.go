package scale

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sys/unix"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// bombLimit is the limit of processes of a fork bomb.
const bombLimit = 200

const bombLock = "bomb"

// forkBomb is a command that forks without end, and ignores SIGTERM. Each process begins its own session. At the limit each process
// continues to call fork. The processes end by themselves after some minutes, so that no fault of a test leaves them running.
const forkBomb = `use POSIX; $SIG{TERM} = "IGNORE"; $end = time + 300;
while (time < $end) { $pid = fork; POSIX::setsid() if defined $pid && !$pid }`

// bomb is a cluster whose job is a fork bomb with its own user.
type bomb struct {
	*cluster.Cluster
	t    *testing.T
	conn redis.Conn
	user uint32
	// owner is the owner of the lock when the bomb started.
	owner string
}

// newBomb starts the bomb on the leader, and returns the leader when the bomb has reached its limit.
func newBomb(t *testing.T, lease time.Duration) (b bomb, leader *cluster.Node) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("it needs root: a limit of processes counts all of a user, and root has none")
	}
	server := testsupport.StartRedis(t)
	b = bomb{t: t, conn: server.Conn(), user: uint32(1_000_000_000 + os.Getpid())} // no other process has this user
	b.Cluster = cluster.Start(t, cluster.Options{
		Nodes: 2, TTL: lease, LockKey: bombLock, MayExit: true, RedisURL: server.URL(),
		JobsYAML: fmt.Sprintf(`
- name: bomb
  schedule: "@yearly"
  grace: 1s
  user: "%d"
  limits: {processes: %d}
  command: [/usr/bin/perl, -e, %q]
`, b.user, bombLimit, forkBomb),
	})
	leader = b.AwaitLeader(time.Minute)
	b.owner, _ = b.lock()
	elsewhere(t, b.redisPID())
	t.Cleanup(func() {
		if err := setPolicy(os.Getpid(), unix.SchedAttr{Policy: unix.SCHED_NORMAL}); err != nil {
			t.Error(err)
		}
	})
	elsewhere(t, os.Getpid())
	for _, n := range b.Nodes {
		if n != leader {
			elsewhere(t, n.Pid())
		}
	}
	if got := b.Command("job", "run", "bomb"); got.Code != 0 {
		t.Fatalf("run the bomb: %+v", got)
	}
	testsupport.Await(t, "the bomb to reach its limit", func() bool { return b.processes() >= bombLimit-1 || !leader.Running() })
	return b, leader
}

// processes returns the number of processes of the bomb that have not ended.
func (b bomb) processes() (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != b.user {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if _, fields, ok := bytes.Cut(stat, []byte(") ")); err == nil && ok && !bytes.HasPrefix(fields, []byte("Z")) {
			n++
		}
	}
	return n
}

// elsewhere lets the kernel run a process before the bomb, as if the process ran on another host.
func elsewhere(t *testing.T, pid int) {
	t.Helper()
	if err := setPolicy(pid, unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1}); err != nil {
		t.Skipf("it needs real-time scheduling: %v", err)
	}
}

// setPolicy sets the scheduling policy of all threads of a process.
func setPolicy(pid int, attr unix.SchedAttr) error {
	attr.Size = unix.SizeofSchedAttr
	for again := true; again; { // a thread that was not found may have started a thread
		again = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name()) // the kernel writes only numbers
			now, err := unix.SchedGetAttr(id, 0)
			if err == nil && now.Policy != attr.Policy {
				again, err = true, unix.SchedSetAttr(id, &attr, 0)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// redisPID returns the process ID of Redis.
func (b bomb) redisPID() int {
	b.t.Helper()
	info, err := redis.String(b.conn.Do("INFO", "server"))
	_, info, _ = strings.Cut(info, "process_id:")
	number, _, _ := strings.Cut(info, "\r")
	pid, bad := strconv.Atoi(number)
	if err = errors.Join(err, bad); err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// lock returns the owner of the lock and the rest of the lease. The owner is empty if the lock is free.
func (b bomb) lock() (owner string, rest time.Duration) {
	b.t.Helper()
	_ = b.conn.Send("MULTI") // Do returns the error
	_ = b.conn.Send("GET", bombLock)
	_ = b.conn.Send("PTTL", bombLock)
	got, err := redis.Values(b.conn.Do("EXEC"))
	var ms int64
	if err == nil {
		_, err = redis.Scan(got, &owner, &ms)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return owner, time.Duration(ms) * time.Millisecond
}

// A daemon that stops while a bomb runs ends the bomb and then releases the lock. The lease would not end before the test.
func TestADaemonThatStopsReleasesTheLockAlthoughABombRuns(t *testing.T) {
	b, leader := newBomb(t, time.Hour)
	if code := leader.Terminate(time.Minute); code != 0 {
		t.Errorf("the daemon ended with code %d", code)
	}
	if left := b.processes(); left > 0 {
		t.Errorf("%d processes of the bomb have outlived the daemon", left)
	}
	if now, rest := b.lock(); now == b.owner {
		t.Errorf("the ended daemon holds the lock for another %v", rest)
	}
}

// The warden of a bomb gets the processors in time to end the bomb before the lease ends, also if the daemon is frozen and cannot help.
// Redis, the other node and this test do not compete with the bomb for the processors, so that the other node leads as soon as it can.
func TestABombEndsBeforeAnotherNodeLeads(t *testing.T) {
	b, leader := newBomb(t, 10*time.Second) // on a busy machine a shorter lease may end before the bomb begins
	if leader.Running() {                   // a starved daemon may have ended
		leader.Freeze()
	}
	testsupport.Await(t, "the end of the lease", func() bool {
		owner, _ := b.lock()
		return owner != b.owner
	})
	if left := b.processes(); left > 0 {
		t.Errorf("%d processes of the bomb run while another node can lead", left)
	}
}
