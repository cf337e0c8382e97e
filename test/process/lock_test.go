package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// Exit codes of baton lock, beside its command's.
const (
	noRedis = 69
	notHad  = 75
	lost    = 76
)

// locks runs `baton lock` in a directory of its own against one Redis.
type locks struct {
	t    *testing.T
	dir  string
	url  string
	conn redis.Conn
}

func newLocks(t *testing.T, r *testsupport.Redis) *locks {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(cluster.Build(t), filepath.Join(dir, "baton")); err != nil {
		t.Fatal(err)
	}
	return &locks{t, dir, r.URL(), r.Conn()}
}

// ending is how a process ended.
type ending struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// locker is a process under way.
type locker struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr output
	began          time.Time
	done           chan struct{}
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// shell starts a shell's line as cron does: nothing in the environment but the
// path, no terminal, another directory.
func (l *locks) shell(line string) *locker { return l.start("/bin/sh", "-c", line) }

// lock starts `baton lock`.
func (l *locks) lock(args ...string) *locker {
	return l.start(append([]string{filepath.Join(l.dir, "baton"), "lock"}, args...)...)
}

func (l *locks) start(argv ...string) *locker {
	l.t.Helper()
	p := &locker{t: l.t, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // cron has no terminal either
	l.run(p)
	return p
}

func (l *locks) run(p *locker) {
	l.t.Helper()
	p.began = time.Now()
	p.cmd.Dir = l.dir
	p.cmd.Env = []string{"PATH=" + l.dir + ":/usr/bin:/bin", "BATON_REDIS=" + l.url}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = soon // whatever holds the output open is a failure of its own
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in its state
	}()
	l.t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) // it has ended already, if all is well
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	})
}

func (p *locker) signal(s syscall.Signal) time.Time {
	p.t.Helper()
	if err := syscall.Kill(p.cmd.Process.Pid, s); err != nil {
		p.t.Fatal(err)
	}
	return time.Now()
}

// wait waits for the end, and fails if that takes too long.
func (p *locker) wait() ending {
	p.t.Helper()
	testsupport.Receive(p.t, fmt.Sprintf("the end of %q", p.cmd.Args), p.done, &p.stderr)
	code := p.cmd.ProcessState.ExitCode()
	if w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		code = -int(w.Signal())
	}
	return ending{code, p.stdout.String(), p.stderr.String(), time.Since(p.began)}
}

// slowRedis is what a command says on a machine that is too busy to answer in time, and that it went on.
var slowRedis = regexp.MustCompile(`baton: .*: context deadline exceeded; trying again\n|baton: redis is back\n`)

// want waits for the end and holds it to an exit code, and parts of the output; "" for an empty stderr.
func (p *locker) want(code int, stdout, stderr string) ending {
	p.t.Helper()
	e := p.wait()
	if e.code != code || e.stdout != stdout || !strings.Contains(e.stderr, stderr) || stderr == "" && slowRedis.ReplaceAllString(e.stderr, "") != "" {
		p.t.Errorf("%q ended with %d\nstdout %q\nstderr %q\nwant %d, %q, %q", p.cmd.Args, e.code, e.stdout, e.stderr, code, stdout, stderr)
	}
	return e
}

// file waits until the command has written a file, and returns what is in it.
func (l *locks) file(name string) string {
	l.t.Helper()
	var text []byte
	testsupport.Await(l.t, "the command to write "+name, func() bool {
		text, _ = os.ReadFile(filepath.Join(l.dir, name)) // there is none yet
		return len(text) > 0
	})
	return strings.TrimSpace(string(text))
}

// owner is what Redis has for a name; "" for nothing.
func (l *locks) owner(name string) string {
	l.t.Helper()
	owner, err := redis.String(l.conn.Do("GET", name))
	if err != nil && err != redis.ErrNil { //nolint:errorlint // redigo returns it as it is
		l.t.Fatal(err)
	}
	return owner
}

func TestLockRunsACommandAsItself(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	l.lock("a", "--", "sh", "-c", "echo out; echo err >&2; exit 42").want(42, "out\n", "err\n")
	l.lock("a", "-c", "kill -9 $$").want(137, "", "")
	l.lock("a", "--", "nosuchcommand").want(127, "", "nosuchcommand: command not found")
	l.lock("a", "--", "/etc/passwd").want(126, "", "/etc/passwd: command cannot be run")
	l.lock("a", "--").want(2, "", "the command is missing")
	l.lock("a}", "--", "true").want(2, "", "without a hash tag")
	l.lock("-n", "2", "a", "b", "--", "true").want(2, "", "a semaphore has one name")
	l.shell("echo in | baton lock a -- cat").want(0, "in\n", "")
	l.shell("baton lock a -- yes | head -n 1").want(0, "y\n", "")
	l.shell("baton lock a -- false && echo yes || echo no").want(0, "no\n", "")
	if owner := l.owner("a"); owner != "" {
		t.Errorf("the lock is still held by %s", owner)
	}
}

// The examples of the help text are lines that people paste.
func TestEveryExampleOfTheHelpRuns(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	for _, name := range []string{"report", "move-stock", "ffmpeg", "make"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	help := l.lock("--help").wait().stdout
	_, examples, _ := strings.Cut(help, "Examples:\n")
	examples, _, _ = strings.Cut(examples, "\nFlags:")
	ran := 0
	for line := range strings.Lines(examples) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "/usr/local/bin/", "./")
		line = regexp.MustCompile(`^[0-9*]+( +[0-9*]+){4} +root +`).ReplaceAllString(line, "") // cron's fields
		line = strings.Replace(line, "--at-least 1m", "--at-least 100ms", 1)
		if line == "" || line[0] == '#' {
			continue
		}
		code := 0
		if strings.Contains(line, "--break") {
			code = 3 // nobody holds it
		}
		if e := l.shell(line).wait(); e.code != code || code == 0 && slowRedis.ReplaceAllString(e.stderr, "") != "" {
			t.Errorf("%s\nended with %d: %s%s", line, e.code, e.stdout, e.stderr)
		}
		ran++
	}
	if ran < 6 {
		t.Errorf("%d examples were found in:\n%s", ran, help)
	}
}

func TestTheCommandFindsItsLockInTheEnvironment(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	const show = `env | grep ^BATON_ | grep -v REDIS | sort; redis-cli -u $BATON_REDIS hmget {z}:term owner epoch node_id; redis-cli -u $BATON_REDIS hmget "{a b}:term" owner epoch`
	out := l.lock("--node-id", "db1", "z", "a b", "-c", show).wait()
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	if out.code != 0 || len(lines) != 10 {
		t.Fatalf("%+v", out)
	}
	z, ab := lines[5:8], lines[8:]
	want := []string{
		"BATON_EPOCH=" + z[1],
		"BATON_LOCKS=a+b=" + ab[0] + ":" + ab[1] + " z=" + z[0] + ":" + z[1],
		"BATON_LOCK_KEY=z",
		"BATON_NODE_ID=" + z[2],
		"BATON_OWNER=" + z[0],
	}
	if got := lines[:5]; !slices.Equal(got, want) || z[2] != "db1" {
		t.Errorf("the command found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatAnotherProgramLocksExcludesUsAndIsExcluded(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	p := l.lock("a", "-c", "echo $BATON_OWNER > owner; until test -e end; do sleep 0.01; done")
	told := l.file("owner")
	if got := l.owner("a"); got != told {
		t.Errorf("Redis has %q, the command was told %q", got, told)
	}
	if reply, err := l.conn.Do("SET", "a", "x", "NX", "PX", 1000); err != nil || reply != nil {
		t.Errorf("SET NX of a lock that is held: %v, %v", reply, err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.wait()
	if reply, err := l.conn.Do("SET", "a", "x", "NX", "PX", 60_000); err != nil || reply != "OK" {
		t.Errorf("SET NX of a lock that was given back: %v, %v", reply, err)
	}
	l.lock("--no-wait", "-v", "a", "--", "true").want(notHad, "", "held by a program that is not baton")
}

func TestWithoutWaitingAHeldLockIsNotHadAndNothingIsSaid(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	held := l.lock("a", "-c", "echo x > began; sleep 1000")
	l.file("began")
	l.lock("--no-wait", "a", "--", "true").want(notHad, "", "") // the lock is held for longer than anything is waited for
	l.lock("--no-wait", "-E", "0", "a", "--", "echo", "ran").want(0, "", "")
	l.lock("--wait", "0", "-E", "9", "a", "--", "echo", "ran").want(9, "", "was not acquired")
	held.signal(syscall.SIGTERM)
	held.want(143, "", "")
}

// Of several locks all are had or none.
func TestAWaitThatRunsOutGivesBackWhatItHad(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	if _, err := l.conn.Do("SET", "b", "x"); err != nil {
		t.Fatal(err)
	}
	const wait = 5 * time.Second // which is for the first lock, too: on a busy machine a process begins late
	p := l.lock("--wait", wait.String(), "b", "a", "-c", "echo ran")
	testsupport.Await(t, "the first lock to be taken", func() bool { return l.owner("a") != "" })
	e := p.want(notHad, "", `lock "b" was not acquired within 5s: held by a program that is not baton`)
	if owner := l.owner("a"); owner != "" {
		t.Errorf("the first lock is still held by %s", owner)
	}
	if e.took < wait {
		t.Errorf("it waited %v", e.took)
	}
}

func TestAWaitIsInterruptedByASignal(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	if _, err := l.conn.Do("SET", "b", "x"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := l.lock("a", "b", "--", "echo", "ran")
		testsupport.Await(t, "the first lock to be taken", func() bool { return l.owner("a") != "" })
		p.signal(s)
		p.want(128+int(s), "", "")
		if owner := l.owner("a"); owner != "" {
			t.Errorf("%v: the first lock is still held by %s", s, owner)
		}
	}
}

func TestARedisThatIsAwayIsWaitedForNoLongerThanAsked(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	l := newLocks(t, r)
	r.Kill()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--no-wait"}, noRedis},
		{[]string{"--no-wait", "-E", "0"}, noRedis},
		{[]string{"--wait", "700ms"}, noRedis},
	} {
		e := l.lock(append(c.args, "a", "--", "echo", "ran")...).want(c.code, "", "connect to redis")
		for line := range strings.Lines(e.stderr) {
			if strings.Count(line, "is redis running there") != 1 {
				t.Errorf("%v: the advice is not given once: %s", c.args, line)
			}
		}
	}
	p := l.lock("a", "--", "echo", "ran")
	testsupport.Await(t, "the command to ask in vain", func() bool { return strings.Contains(p.stderr.String(), "; trying again") }, &p.stderr)
	r.Restart()
	p.want(0, "ran\n", "redis is back")
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		name := strconv.Itoa(int(s))
		p := l.lock("a", "-c", fmt.Sprintf("trap 'echo got; exit 7' %d; echo x > began%d; while :; do sleep 0.01; done", s, s))
		l.file("began" + name)
		p.signal(s)
		e := p.wait()
		// The shell may tell that its sleep was ended, too.
		if e.code != 7 || e.stdout != "got\n" {
			t.Errorf("%v: %+v", s, e)
		}
	}
}

// Two commands that want the same locks in another order never wait for each other.
func TestLocksInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	const alone = "mkdir busy && rmdir busy" // fails if somebody else is in
	var wg sync.WaitGroup
	for _, names := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a"}} {
		wg.Go(func() {
			line := fmt.Sprintf("i=0; while [ $i -lt 8 ]; do i=$((i+1)); baton lock %s -c '%s' || exit 1; done", strings.Join(names, " "), alone)
			cmd := exec.Command("/bin/sh", "-c", line)
			cmd.Dir = l.dir
			cmd.Env = []string{"PATH=" + l.dir + ":/usr/bin:/bin", "BATON_REDIS=" + l.url}
			timer := time.AfterFunc(2*soon, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", names, err, out)
			}
		})
	}
	wg.Wait()
}

func TestASemaphoreOfTwoNeverHasThree(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	// A slot's directory exists while its holder is in: nobody else may make it.
	const work = `for i in 1 2 3; do mkdir slot$BATON_SLOT || exit 1; sleep 0.02; rmdir slot$BATON_SLOT; done; echo $BATON_SLOT $BATON_LOCK_KEY`
	var all []*locker
	for range 5 {
		all = append(all, l.lock("-n", "2", "enc", "-c", work))
	}
	for _, p := range all {
		if e := p.wait(); e.code != 0 || e.stdout != "1 enc:1\n" && e.stdout != "2 enc:2\n" {
			t.Errorf("%+v", e)
		}
	}
}

func TestANestedLockReenters(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	l.lock("a", "-c", `baton lock a -c '[ "$(redis-cli -u $BATON_REDIS get a)" = "$BATON_OWNER" ] && echo in'`).want(0, "in\n", "")
	l.lock("a", "-c", `baton lock b a -c 'baton lock b -- echo deep; baton lock a b -- echo both'`).want(0, "deep\nboth\n", "")
	l.lock("-n", "2", "s", "-c", `baton lock -n 2 s -c 'echo $BATON_SLOT $BATON_LOCK_KEY'`).want(0, "1 s:1\n", "")
	// A lock that sorts before could be waited for by somebody who waits for ours.
	l.lock("b", "-c", "baton lock a -- echo in").want(2, "", "sorts before it")
	l.lock("b", "-c", "baton lock --no-wait a -- echo in; baton lock --wait 1s a -- echo in").want(0, "in\nin\n", "")
	l.shell("BATON_LOCKS=nonsense baton lock a -- true").want(2, "", "unset it")
	if owner := l.owner("a") + l.owner("b"); owner != "" {
		t.Errorf("a lock is still held by %s", owner)
	}
}

func TestANestedLockThatIsHeldNoMoreIsSaidToBe(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	words := "BATON_LOCKS=a=e51b61a5-7e41-42c1-b21e-8ff63a6e4a0c:7 "
	l.shell(words+"baton lock a -- echo in").want(lost, "", "the outer command held it")
	if _, err := l.conn.Do("SET", "a", "thief"); err != nil {
		t.Fatal(err)
	}
	l.shell(words+"baton lock a -- echo in").want(lost, "", `is now "thief"`)
	if _, err := l.conn.Do("SET", "a", "e51b61a5-7e41-42c1-b21e-8ff63a6e4a0c"); err != nil {
		t.Fatal(err)
	}
	l.shell(words+"baton lock a -c 'echo $BATON_EPOCH'").want(0, "7\n", "")
}

func TestLocksAreListedAndBroken(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	l.lock("--list").want(0, "no locks are held\n", "")
	a := l.lock("--ttl", ttl.String(), "--node-id", "db1", "a", "-c", "echo x > a; exec sleep 1000")
	b := l.lock("--node-id", "db2", "b", "-c", "echo x > b; exec sleep 1000")
	l.file("a")
	l.file("b")
	var list ending
	testsupport.Await(t, "the list to have both", func() bool {
		list = l.lock("--list").wait()
		return strings.Contains(list.stdout, "db1") && strings.Contains(list.stdout, "db2")
	})
	lines := strings.Split(list.stdout, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "a     db1") || !strings.Contains(lines[2], l.owner("b")) {
		t.Errorf("the list:\n%s", list.stdout)
	}
	if json := l.lock("--list", "-o", "json").wait().stdout; !strings.Contains(json, `"name": "a"`) || !strings.Contains(json, `"node_id": "db2"`) {
		t.Errorf("the list: %s", json)
	}

	// A key of another type hides no other lock.
	for _, command := range [][]any{{"RPUSH", "queue", "x"}, {"ZADD", "baton:locks", time.Now().UnixMilli(), "queue"}} {
		if _, err := l.conn.Do(command[0].(string), command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	list = l.lock("--list").wait()
	if !strings.Contains(list.stdout, "db1") || !strings.Contains(list.stdout, "db2") || strings.Count(list.stderr, "\n") != 1 ||
		!strings.Contains(list.stderr, `"queue"`) {
		t.Errorf("with a key of another type: the list:\n%s%s", list.stdout, list.stderr)
	}

	epoch, err := redis.Int64(l.conn.Do("HGET", "{a}:term", "epoch"))
	if err != nil {
		t.Fatal(err)
	}
	left, err := redis.Int64(l.conn.Do("PTTL", "a"))
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	l.lock("--break", "a", "--reason", "test").wait()
	e := a.want(lost, "", `lock "a" was lost (lease lost)`)
	if heard, err := redis.Bool(l.conn.Do("EXISTS", "{a}:quarantine")); err != nil || !heard {
		t.Errorf("the holder heard of it only when its lease had ended: %v, %s", err, e.stderr)
	}
	next := l.lock("a", "-c", "echo $BATON_EPOCH").wait()
	if since := time.Since(asked); since < time.Duration(left-300)*time.Millisecond {
		t.Errorf("the next holder was in %v after the break; the old one's lease had %d ms left", since, left)
	}
	if got, err := strconv.ParseInt(strings.TrimSpace(next.stdout), 10, 64); err != nil || got <= epoch {
		t.Errorf("the next epoch is %q after %d", next.stdout, epoch)
	}
	events, err := redis.Values(l.conn.Do("XREVRANGE", "{a}:events", "+", "-"))
	if err != nil || !strings.Contains(fmt.Sprintf("%s", events), "event broken node_id db1") || !strings.Contains(fmt.Sprintf("%s", events), ": test (on ") {
		t.Errorf("the history: %s, %v", events, err)
	}
	l.lock("--break", "c").want(3, "", "nobody holds it")
	b.signal(syscall.SIGTERM)
	b.wait()
}

// What ends soon would run again on a host whose clock is a little late.
func TestALockIsHeldAtLeastAsLongAsAsked(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	const least = time.Second
	if e := l.lock("--at-least", least.String(), "a", "--", "true").want(0, "", ""); e.took < least {
		t.Errorf("it was held for %v", e.took)
	}

	p := l.lock("--at-least", "1h", "a", "-c", "echo $$ > began; exit 3")
	l.commandOver("began")
	l.lock("--no-wait", "a", "--", "echo", "ran").want(notHad, "", "")
	p.signal(syscall.SIGTERM)
	p.want(3, "", "")

	p = l.lock("--at-least", "1h", "a", "-c", "exec 2>/dev/null; trap 'exit 4' TERM; echo x > trapped; while :; do sleep 0.1; done")
	l.file("trapped")
	p.signal(syscall.SIGTERM) // while the command runs
	p.want(4, "", "")

	// A signal that the command takes for something else does not give the lock away.
	p = l.lock("--at-least", "1h", "a", "-c",
		"exec 2>/dev/null; trap 'echo x > reloaded' HUP; echo x > hears; while [ ! -e reloaded ]; do sleep 0.1; done; echo $$ > over")
	l.file("hears")
	p.signal(syscall.SIGHUP)
	l.commandOver("over")
	l.lock("--no-wait", "a", "--", "echo", "ran").want(notHad, "", "")
	p.signal(syscall.SIGTERM)
	p.want(0, "", "")
}

// commandOver waits for the end of the command whose number is in a file.
func (l *locks) commandOver(file string) {
	l.t.Helper()
	dir := filepath.Join("/proc", l.file(file))
	testsupport.Await(l.t, "the command to end", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

// In a crontab silence means that another host has the lock. Too few replicas is
// nothing that anybody would find out by himself.
func TestALockThatTooFewReplicasHaveIsToldOf(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	file := filepath.Join(l.dir, "baton.yaml")
	text := "redis: {url: \"" + l.url + "\"}\nelection: {ttl: 30s, attempt_timeout: 3s, wait_replicas: 1}\n" // much time to ask the replicas
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []string{"--no-wait", "--wait=5s"} {
		l.lock("--config", file, wait, "a", "--", "true").want(noRedis, "", "0 of the 1 replicas that election.wait_replicas asks for have the lock")
	}
}
