package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/internal/testsupport/cluster"
)

// In a container without an init the daemon is PID 1. Nobody else reaps orphans there, and ends what a run leaves.
func TestAsPID1TheDaemonReapsOrphansAndEndsThoseOfRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root: a namespace of processes")
	}
	t.Parallel()
	dir, program := t.TempDir(), cluster.Build(t)
	config, logged, ended := filepath.Join(dir, "baton.yaml"), filepath.Join(dir, "log"), filepath.Join(dir, "ended")
	text := fmt.Sprintf(`
redis: {url: %q}
election: {lock_key: baton}
http: {listen: "off"}
jobs:
  - name: unwatched
    schedule: "@every 2s"
    command:
      - sh
      - -c
      - setsid sleep 600 & sleep 0.1; read -r _ _ _ guard _ < /proc/$PPID/stat; echo killed >> %q; kill -9 $guard $PPID; sleep 600
  - {name: watched, schedule: "@every 1s", command: [sh, -c, "(setsid sleep 600 &); exit 3"]}
`, testsupport.StartRedis(t).URL(), ended)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", program, "run", "--config", config)
	cmd.Dir = dir
	p, err := child.StartLogged(cmd, logged)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Kill() // the daemon dies with it, and all of the namespace with the daemon
		<-p.Done()
	}()
	await := func(what string, done func() bool) { t.Helper(); testsupport.Await(t, what, done, textOf(logged)) }
	unwatched := func(runs int) func() bool {
		return func() bool { return strings.Count(textOf(ended).String(), "killed") >= runs }
	}
	await("a run whose watchers were killed", unwatched(1))

	daemon := childrenOf(p.Pid())[0]
	foreign := exec.Command("nsenter", "-t", strconv.Itoa(daemon), "-p", "-m", "sh", "-c", "(sleep 599 &); (true &)")
	if err := foreign.Run(); err != nil { // without pipes: they would stay open
		t.Fatal(err)
	}
	await("an operator's process in the container", func() bool { return len(sleeping(daemon, "599")) == 1 })
	await("another run whose watchers were killed", unwatched(3))
	await("a watched run's exit code", func() bool { return strings.Contains(textOf(logged).String(), "exit code 3") })
	await("the end of what the runs have left", func() bool { return len(sleeping(daemon, "600")) == 0 })
	await("the orphans to be reaped", func() bool {
		for _, pid := range childrenOf(daemon) {
			if stateOf(pid) == "Z" {
				return false
			}
		}
		return true
	})
	if len(sleeping(daemon, "599")) != 1 {
		t.Error("a process that belongs to no run was ended")
	}
	log := textOf(logged).String()
	if strings.Contains(log, "no child processes") {
		t.Errorf("the exit of a child was taken from those who wait for it:\n%s", log)
	}
}

// textOf is a file as a text; a file that is not there is empty.
type textOf string

func (file textOf) String() string {
	text, _ := os.ReadFile(string(file))
	return string(text)
}

// childrenOf lists the children of a process.
func childrenOf(pid int) (found []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// sleeping lists the orphans of a daemon that sleep for so long.
func sleeping(daemon int, seconds string) (found []int) {
	for _, pid := range childrenOf(daemon) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Equal(line, []byte("sleep\x00"+seconds+"\x00")) {
			found = append(found, pid)
		}
	}
	return found
}

func stateOf(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}
