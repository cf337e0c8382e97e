package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/daemon/adminsocket"
	"baton/internal/testsupport"
)

// soon is a generous limit, because two cores may run all tests at the same time.
const soon = time.Minute

// running is a daemon inside this test.
type running struct {
	t       *testing.T
	address string // of the status page
	logs    *recorder.ObservedLogs
	stop    context.CancelFunc
	ended   chan error
	exited  chan int
}

// configFor returns the configuration of a node "a" of the election "baton" in that Redis. The limits of its lease also suffice on a
// starved machine: an attempt, and the report of a job's end, may take a second each. A leader that loses its lease would end its
// process.
func configFor(url string) config.Config {
	c := config.Default()
	c.Node.ID = "a"
	c.Redis.URL = url
	c.Election.TTL = 10 * time.Second
	c.HTTP.Listen = "127.0.0.1:0"
	return c.WithDefaults()
}

// start runs a daemon until the test stops it, and returns when the daemon is ready. env is the whole environment of the daemon.
func start(t *testing.T, c config.Config, env map[string]string) *running {
	t.Helper()
	return startWith(t, c, env, func(*Options) {})
}

// startWith is start with the test's own options.
func startWith(t *testing.T, c config.Config, env map[string]string, set func(*Options)) *running {
	t.Helper()
	core, logs := recorder.New(zapcore.InfoLevel)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, logs: logs, stop: cancel, ended: make(chan error, 1), exited: make(chan int, 1)}
	ready, over := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		o := Options{
			Version: "test", Logger: zap.New(core),
			Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			Exit:   func(code int) { r.exited <- code },
			Ready:  func(address string) { ready <- address },
		}
		set(&o)
		r.ended <- Run(ctx, c, o)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			r.tell()
		}
		cancel()
		select { // the daemon's files are in directories that the test removes
		case <-over:
		case <-time.After(10 * time.Second):
		}
	})
	await(t, "the daemon to be ready", func() bool {
		select {
		case r.address = <-ready:
			return true
		case err := <-r.ended:
			t.Fatalf("the daemon ended before it was ready: %v", err)
		default:
		}
		return false
	})
	return r
}

// tell prints the end of the daemon's log. It does not use t.Logf, because test/suite treats the lines of t.Logf as assertions.
func (r *running) tell() {
	const most = 60
	entries := r.logs.All()
	for _, e := range entries[max(0, len(entries)-most):] {
		fmt.Fprintf(r.t.Output(), "%s %s %s %v\n", e.Time.Format("15:04:05.000"), e.Level, e.Message, e.ContextMap())
	}
}

// end stops the daemon and returns the error of Run.
func (r *running) end() error {
	r.t.Helper()
	r.stop()
	return testsupport.Receive(r.t, "the daemon to end", r.ended)
}

// endsWell stops the daemon, which must end without an error.
func (r *running) endsWell() {
	r.t.Helper()
	if err := r.end(); err != nil {
		r.t.Error(err)
	}
}

func (r *running) answer(path string) int {
	r.t.Helper()
	resp, err := http.Get("http://" + r.address + path)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (r *running) leads() {
	r.t.Helper()
	await(r.t, "the daemon to lead", func() bool { return r.answer("/-/leader") == http.StatusOK })
}

func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	testsupport.Await(t, what, reached)
}

func TestReadyIsToldTheAddressOfTheStatusPage(t *testing.T) {
	r := start(t, configFor("redis://127.0.0.1:1/0"), nil)
	for path, want := range map[string]int{"/": 200, "/-/healthy": 200, "/-/ready": 200, "/-/leader": 503, "/metrics": 200, "/api/v1/status": 503} {
		if got := r.answer(path); got != want {
			t.Errorf("%s of a node without Redis: %d, want %d", path, got, want)
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("a daemon that never reached Redis ended with %v", err)
	}
}

func TestNothingListensWhenTheStatusPageIsOff(t *testing.T) {
	c := configFor(testsupport.StartRedis(t).URL())
	c.HTTP.Listen = "off"
	r := start(t, c, nil)
	if r.address != "" {
		t.Errorf("ready with address %q", r.address)
	}
	await(t, "the daemon to lead", func() bool { return r.logs.FilterMessage("leading").Len() == 1 })
	r.endsWell()
}

func TestAListenerInUseIsAnErrorThatSaysSo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	server := testsupport.StartRedis(t)
	c := configFor(server.URL())
	c.HTTP.Listen = taken.Addr().String()
	err = Run(t.Context(), c, Options{Logger: zap.NewNop(), Getenv: nothingSet, Exit: func(int) { t.Error("the process was ended") }})
	if err == nil || !strings.Contains(err.Error(), "http.listen: ") || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "another baton") {
		t.Errorf("error %v", err)
	}
	if keys, err := redis.Strings(server.Conn().Do("KEYS", "*")); err != nil || len(keys) != 0 {
		t.Errorf("a daemon that could not start has left %q in Redis (%v)", keys, err)
	}
}

func nothingSet(string) (string, bool) { return "", false }

// A node gives everything back, in this order: its work ends, the lock is released, the node leaves the list, and the page ends.
func TestShutdownGivesBackWhatWasTaken(t *testing.T) {
	server := testsupport.StartRedis(t)
	conn := server.Conn()
	r := start(t, configFor(server.URL()), nil)
	r.leads()
	if nodes, err := redis.Strings(conn.Do("HKEYS", "{baton}:nodes")); err != nil || !slices.Equal(nodes, []string{"a"}) {
		t.Fatalf("nodes of a running daemon: %q, %v", nodes, err)
	}
	if err := r.end(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	for _, key := range []string{"baton", "{baton}:nodes"} {
		if left, err := redis.Int(conn.Do("EXISTS", key)); err != nil || left != 0 {
			t.Errorf("%s is still there (%v)", key, err)
		}
	}
	var told []string
	for _, line := range r.logs.All() {
		if line.Message != "redis unavailable, retrying" && line.Message != "redis available again" { // of a machine that stood still
			told = append(told, line.Message)
		}
	}
	want := []string{"started", "leading", "stepping down: ending the jobs", "no longer leading", "stopped"}
	if !slices.Equal(told, want) {
		t.Errorf("the log says %q, want %q", told, want)
	}
	if conn, err := net.Dial("tcp", r.address); err == nil {
		_ = conn.Close()
		t.Error("the status page is still there")
	}
	if clients, err := redis.String(conn.Do("CLIENT", "LIST")); err != nil || strings.Contains(clients, "name=baton:a") {
		t.Errorf("connections are left: %s (%v)", clients, err)
	}
}

func TestShutdownDoesNotWaitForARedisThatIsAway(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	r := start(t, configFor(server.URL()), nil)
	r.leads()
	server.Freeze()
	defer server.Thaw()
	if err := r.end(); err != nil { // while Redis hangs
		t.Errorf("the daemon ended with %v", err)
	}
	select {
	case code := <-r.exited:
		t.Errorf("the process was ended with code %d", code)
	default:
	}
}

func TestTheLeaseFileIsThereWhileTheLockIs(t *testing.T) {
	server := testsupport.StartRedis(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "lease.json")
	r := start(t, configFor(server.URL()), map[string]string{"RUNTIME_DIRECTORY": dir})
	r.leads()
	await(t, "the lease file", func() bool { _, err := os.Stat(path); return err == nil })
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner alone", info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		LockKey string `json:"lock_key"`
		Owner   string `json:"owner"`
		Epoch   int64  `json:"epoch"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	owner, err := redis.String(server.Conn().Do("GET", "baton"))
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := redis.Int64(server.Conn().Do("HGET", "{baton}:term", "epoch"))
	if err != nil {
		t.Fatal(err)
	}
	if got.LockKey != "baton" || got.Owner != owner || got.Epoch != epoch {
		t.Errorf("lease file %s; want owner %s, epoch %d", text, owner, epoch)
	}
	r.endsWell()
	left, err := os.ReadDir(dir)
	// The lock file beside the admin socket stays, because a process that removes it could remove the lock file of a new owner.
	left = slices.DeleteFunc(left, func(f os.DirEntry) bool { return f.Name() == adminsocket.Name+".lock" })
	if err != nil || len(left) != 0 {
		t.Errorf("left in the runtime directory: %v, %v", left, err)
	}
}

// A lock that was not released is left for `release --crashed`.
func TestTheLeaseFileStaysIfTheReleaseWasNotAnswered(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	dir := t.TempDir()
	r := start(t, configFor(server.URL()), map[string]string{"RUNTIME_DIRECTORY": dir})
	r.leads()
	await(t, "the lease file", func() bool {
		_, found, err := crash.ReadLease(filepath.Join(dir, "lease.json"))
		return found && err == nil
	})
	server.Freeze()
	defer server.Thaw()
	r.endsWell()
	if l, found, err := crash.ReadLease(filepath.Join(dir, "lease.json")); err != nil || !found || l.LockKey != "baton" || l.Owner == "" {
		t.Errorf("lease %+v, %v, %v", l, found, err)
	}
}

// Without a runtime directory the daemon writes no file in its working directory.
func TestThereIsNoLeaseFileWithoutARuntimeDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	r := start(t, configFor(testsupport.StartRedis(t).URL()), map[string]string{"RUNTIME_DIRECTORY": ""})
	r.leads()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("a leader has made %v (%v)", left, err)
	}
	r.endsWell()
}

// systemd gets its messages through a socket of its own, as for a service with Type=notify.
func TestSystemdIsToldOfReadinessRoleAndEnd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "200000")
	t.Setenv("WATCHDOG_PID", "")
	told, pinged := make(chan string, 1000), make(chan struct{}, 1000)
	go func() {
		defer close(told)
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			told <- string(buf[:n])
			if string(buf[:n]) == "WATCHDOG=1" {
				pinged <- struct{}{}
			}
		}
	}()
	r := start(t, configFor(testsupport.StartRedis(t).URL()), nil)
	r.leads()
	for range 2 {
		testsupport.Receive(t, "a ping of the watchdog", pinged)
	}
	r.endsWell()
	_ = l.Close()
	var states []string
	pings := 0
	for state := range told {
		if state == "WATCHDOG=1" {
			pings++
		} else {
			states = append(states, state)
		}
	}
	all := strings.Join(states, "\n")
	for _, want := range []string{"READY=1\n", "STATUS=leading epoch ", "STATUS=stopping: shutting down", "STOPPING=1"} {
		if !strings.Contains(all, want) {
			t.Errorf("systemd was not told %q:\n%s", want, all)
		}
	}
	if strings.Index(all, "STOPPING=1") < max(strings.Index(all, "READY=1"), strings.Index(all, "STATUS=leading")) {
		t.Errorf("systemd was told of the end before it came:\n%s", all)
	}
	if pings < 2 {
		t.Errorf("the watchdog was pinged %d times", pings)
	}
}

func TestANewLeaderForgetsNodesThatAreLongGone(t *testing.T) {
	r := testsupport.StartRedis(t)
	conn := r.Conn()
	old := time.Now().Add(-25 * time.Hour).UnixMilli()
	recent := time.Now().Add(-time.Hour).UnixMilli()
	for id, seen := range map[string]int64{"long-gone": old, "gone": recent} {
		presence, err := json.Marshal(map[string]any{"state": "standby", "seen_ms": seen})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Do("HSET", "{baton}:nodes", id, presence); err != nil {
			t.Fatal(err)
		}
	}
	start(t, configFor(r.URL()), nil)
	testsupport.AwaitNoError(t, "the nodes to be a and gone", func() error {
		ids, err := redis.Strings(conn.Do("HKEYS", "{baton}:nodes"))
		if slices.Sort(ids); err == nil && !slices.Equal(ids, []string{"a", "gone"}) {
			err = fmt.Errorf("they are %v", ids)
		}
		return err
	})
}
