package crash

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// The command kills processes, so it must not run where no user wants that.
func TestReleaseCrashedRefusesOutsideAService(t *testing.T) {
	load := func() (config.Config, error) { return config.Default(), nil }
	for _, x := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "$SERVICE_RESULT is not set"},
		{map[string]string{"RUNTIME_DIRECTORY": "/run/baton"}, "baton release --owner UUID"},
		{map[string]string{"SERVICE_RESULT": "success"}, "the unit needs RuntimeDirectory="},
	} {
		if released, err := ReleaseLeft(t.Context(), load, lookupIn(x.env)); released != nil || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("environment %v: %v, %v; want it to say %q", x.env, released, err, x.want)
		}
	}
}

func TestAnUnreadableLeaseFileIsToldWithItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease.json")
	if _, found, err := ReadLease(path); found || err != nil {
		t.Errorf("no file: %v, %v; want neither", found, err)
	}
	if err := os.WriteFile(path, []byte(`{"lock_key": "ba`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadLease(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("half a file: %v", err)
	}
	if err := RemoveLease(path); err != nil {
		t.Error(err)
	}
	if err := RemoveLease(path); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if err := WriteLease(filepath.Join(path, "no such directory"), Lease{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// The group is an ordinary directory here. The tests on real hosts check the answers of the kernel.
func TestEveryProcessOfAControlGroupIsKilledButThisOne(t *testing.T) {
	stubborn := func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", "trap '' TERM; echo; read x")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	one, deep := stubborn(), stubborn()
	group := t.TempDir()
	below := filepath.Join(group, "job")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, pids := range map[string][]int{group: {os.Getpid(), one.Process.Pid}, below: {deep.Process.Pid}} {
		text := ""
		for _, pid := range pids {
			text += strconv.Itoa(pid) + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !holdsSelf(group) || holdsSelf(below) {
		t.Error("the group that this process is in is not recognised")
	}
	reaped := make(chan error, 2)
	go func() { reaped <- one.Wait() }()
	go func() { reaped <- deep.Wait() }()
	if err := killGroup(t.Context(), group); err != nil {
		t.Error(err)
	}
	for range 2 {
		select {
		case err := <-reaped:
			if err == nil || err.Error() != "signal: killed" {
				t.Errorf("ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a process of the group is alive")
		}
	}
}

// If a process does not die, the lock must not be released, because the process may still act.
func TestAControlGroupThatDoesNotDieIsAnError(t *testing.T) {
	stopped := exec.Command("sleep", "1000") // the test does not wait for it, so it stays as a zombie
	stopped.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	group := t.TempDir()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(stopped.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := killGroup(ctx, group); err == nil || !strings.Contains(err.Error(), "the lock is not released and expires with its lease") {
		t.Errorf("error %v", err)
	}
	_ = stopped.Wait() // returns an error because the process was killed
}

func TestReleaseByOwnerReleasesThatTermOnly(t *testing.T) {
	server := testsupport.StartRedis(t)
	conn := server.Conn()
	c := config.Default()
	c.Redis.URL = server.URL()
	c = c.WithDefaults()
	if _, err := conn.Do("SET", "baton", "owner-1", "PX", 60000); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		owner string
		left  int
		want  Released
	}{{"owner-0", 1, Released{Holder: "owner-1"}}, {"owner-1", 0, Released{Was: true}}, {"owner-1", 0, Released{}}} {
		if r, err := Release(t.Context(), c, x.owner, "test"); err != nil || r != x.want {
			t.Errorf("the release by %s: %+v, %v; want %+v", x.owner, r, err, x.want)
		}
		if left, err := redis.Int(conn.Do("EXISTS", "baton")); err != nil || left != x.left {
			t.Errorf("after the release by %s: %d locks, %v; want %d", x.owner, left, err, x.left)
		}
	}
}

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}
