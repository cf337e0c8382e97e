package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// What systemd does after a crash (KillMode=mixed, ExecStopPost=), done by hand in
// a control group like a service's: the leader dies, its stubborn child lives on,
// `baton release --crashed` ends that one and releases the lock, and a standby
// leads at once although the lease has hours left.
func TestReleaseAfterACrash(t *testing.T) {
	server := testsupport.StartRedis(t)
	nodes := cluster.Start(t, cluster.Options{Nodes: 2, TTL: time.Hour, RedisURL: server.URL(), RuntimeDir: true,
		ElectionYAML: "heartbeat_interval: 1s\npoll_interval: 30s"})
	leader := nodes.AwaitLeader(soon)
	env := []string{"SERVICE_RESULT=signal", "RUNTIME_DIRECTORY=" + leader.RuntimeDir()}
	release := []string{cluster.Build(t), "release", "--crashed", "--config", leader.ConfigPath()}

	groups, err := makeGroups(t)
	if err != nil {
		// What the command does in a group is also tested beside the code, with a
		// directory in place of the kernel's. Here it must refuse, unless the tests
		// themselves run in a service, which it would end.
		t.Logf("no control group can be made here (%v): only the refusal is tested", err)
		if own, err := os.ReadFile("/proc/self/cgroup"); err != nil || strings.Contains(string(own), ".service\n") {
			t.Logf("and not even that, in %s (%v)", own, err)
			return
		}
		out := cluster.Command(t, soon, env, release[1:]...)
		if out.Code != 1 || !strings.Contains(out.Stderr, "no systemd service's control group") {
			t.Errorf("code %d: %s", out.Code, out.Stderr)
		}
		if !leader.Leading() {
			t.Error("a refused release has ended the term")
		}
		return
	}
	stubborn := exec.Command("sh", "-c", "trap '' TERM; echo; sleep 1000; sleep 1000")
	stubborn.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := stubborn.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stubborn.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stubborn.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-stubborn.Process.Pid, syscall.SIGKILL) }) // gone already, if all is well
	groups.add(t, leader.Pid())
	groups.add(t, stubborn.Process.Pid)
	groups.add(t, childOf(t, stubborn.Process.Pid))

	// Somebody has broken a job since the daemon read the file.
	config, err := os.ReadFile(leader.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	writeConfig := func(text string) {
		if err := os.WriteFile(leader.ConfigPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeConfig(string(config) + "\nnotify:\n  - naam: ops\n   command: [\n")
	if check := cluster.Command(t, soon, nil, "config", "check", leader.ConfigPath()); check.Code != 2 {
		t.Errorf("the file is not broken: code %d: %s", check.Code, check.Stderr)
	}
	lease := filepath.Join(leader.RuntimeDir(), "lease.json")
	nodes.Await(soon, "the lease file of the leader, which comes after the lock", func() bool {
		_, err := os.Stat(lease)
		return err == nil
	})
	leader.Kill()
	if err := syscall.Kill(stubborn.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if left, err := redis.Int(server.Conn().Do("EXISTS", lockKey)); err != nil || left != 1 {
		t.Fatalf("the lock of a killed leader: %d, %v", left, err)
	}
	// The shell enters the group, as systemd's helper does, and becomes baton.
	enter := groups.script() + `exec "$0" "$@"`
	afterwards := func() (string, error) {
		cmd := exec.Command("sh", append([]string{"-c", enter}, release...)...)
		cmd.Env = append(os.Environ(), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	// Where the lock is must be certain, though.
	writeConfig("redis: {url: http://127.0.0.1}\n")
	if text, err := afterwards(); err == nil || !strings.Contains(text, "is not released and expires with its lease") || !strings.Contains(text, ":1:9: redis.url: write redis://") {
		t.Errorf("baton release --crashed without a place of the lock: %v: %s", err, text)
	}
	writeConfig(string(config) + "\nnotify:\n  - naam: ops\n   command: [\n")
	text, err := afterwards()
	if err != nil || !strings.Contains(text, `released lock "baton", which the daemon left behind`) {
		t.Errorf("baton release --crashed: %v: %s", err, text)
	}
	successor := nodes.AwaitOther(leader, soon) // of a lease of an hour

	if err := testsupport.Receive(t, "the end of the child that ignores TERM", ended); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the child that ignores TERM ended with %v", err)
	}
	if left := groups.processes(t); left != "" {
		t.Errorf("left in the group: %s", left)
	}
	if _, err := os.Stat(lease); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lease file: %v", err)
	}
	// After a start that failed there is nothing to release, and nothing more to say of why.
	writeConfig("redis: {url: http://127.0.0.1}\n")
	if text, err := afterwards(); err != nil || text != "" {
		t.Errorf("baton release --crashed without a lease: %v: %s", err, text)
	}
	if !successor.Running() {
		t.Error("a node outside the group was killed")
	}
}

// controlGroups are one new group in each hierarchy that baton looks at.
type controlGroups []string

// makeGroups makes groups below those that the tests run in, named as systemd names
// a service's. In every such hierarchy or in none: a process that is in one only
// would still be in our own group of the other.
func makeGroups(t *testing.T) (controlGroups, error) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("baton-test-%d.service", os.Getpid())
	var groups controlGroups
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "name=systemd" {
			continue
		}
		made := ""
		for _, mount := range []string{"", "unified", "systemd"} {
			dir := filepath.Join("/sys/fs/cgroup", mount, parts[2])
			if procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || !strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", os.Getpid())) {
				continue
			}
			made = filepath.Join(dir, name)
			if err := os.Mkdir(made, 0o755); errors.Is(err, fs.ErrExist) && len(groups) > 0 {
				made = "" // the other hierarchy's, seen again
				continue
			} else if err != nil {
				return nil, err
			}
			t.Cleanup(func() { removeGroup(t, made) })
			groups = append(groups, made)
			break
		}
		if made == "" {
			return nil, fmt.Errorf("hierarchy %q is not mounted", line)
		}
	}
	if len(groups) == 0 {
		return nil, errors.New("no hierarchy of control groups")
	}
	return groups, nil
}

// removeGroup waits for the dead of the group to be reaped, which is for init to do.
func removeGroup(t *testing.T, dir string) {
	testsupport.AwaitNoError(t, "the control group of this test is removed", func() error { return os.Remove(dir) })
}

func (g controlGroups) add(t *testing.T, pid int) {
	t.Helper()
	for _, dir := range g {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// script makes a shell enter the groups.
func (g controlGroups) script() string {
	var b strings.Builder
	for _, dir := range g {
		fmt.Fprintf(&b, "echo $$ > '%s/cgroup.procs' || exit 99; ", dir)
	}
	return b.String()
}

func (g controlGroups) processes(t *testing.T) string {
	t.Helper()
	var all string
	for _, dir := range g {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return strings.TrimSpace(all)
}

// childOf is the one child of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	var child int
	testsupport.AwaitNoError(t, fmt.Sprintf("process %d has a child", parent), func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
		if err != nil {
			return err
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	})
	return child
}
