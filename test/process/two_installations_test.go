package process

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/internal/testsupport/cluster"
)

// nodeFile writes the configuration of a node of its own; more is what comes after node.id.
func nodeFile(t *testing.T, redis, id, more, sections string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), id+".yaml")
	text := fmt.Sprintf("node: {id: %s%s}\nredis: {url: %q}\nelection: {lock_key: shared, rollout_within: 1s}\n"+
		"http: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n%s", id, more, redis, sections)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const reportJob = "jobs: [{name: report, schedule: \"@every 1s\", late_after: 1s, command: [/bin/true]}]\n"

// A package installs a daemon without jobs, and starts it. It must not take the lead from a node that has some.
func TestANodeWithoutJobsLeavesTheLeadToOneThatHasSome(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	idle := cluster.StartNode(t, nodeFile(t, server.URL(), "idle", "", ""), nil)
	testsupport.Await(t, "the idle node to say why no node leads", func() bool {
		s, ok := idle.Status()
		return ok && s.Leader == nil && strings.HasPrefix(s.Vacancy, "no node has jobs")
	})
	out := cluster.Command(t, soon, nil, "explain", "--config", idle.ConfigPath())
	if !strings.Contains(out.Stdout+out.Stderr, "idle does not campaign: its configuration has no jobs") {
		t.Errorf("explain does not say it:\n%s%s", out.Stdout, out.Stderr)
	}
	worker := cluster.StartNode(t, nodeFile(t, server.URL(), "worker", "", reportJob), nil)
	testsupport.Await(t, "a run on the node that has the job", func() bool {
		s, ok := worker.Status()
		return ok && len(s.Jobs) == 1 && s.Jobs[0].LastRun != nil && s.Jobs[0].LastRun.NodeID == "worker"
	})
	testsupport.Await(t, "the idle node to see who leads", func() bool {
		s, ok := idle.Status()
		return ok && s.Leader != nil && s.Leader.NodeID == "worker"
	})
}

// Two installations share a lock. The job that the leader lacks is run by none, and every surface says so.
func TestAJobThatTheLeaderLacksIsShownEverywhere(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	leader := cluster.StartNode(t, nodeFile(t, server.URL(), "theirs", ", candidate: true", ""), nil)
	testsupport.Await(t, "the node without jobs to lead, which says candidate: true", leader.Leading)
	own := cluster.StartNode(t, nodeFile(t, server.URL(), "ours", "", reportJob), nil)
	const words = "not scheduled by theirs, which leads"
	read := func(path string) string {
		resp, err := http.Get(own.URL() + path)
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // a part of it says less, and is read again
		return string(body)
	}
	for path, want := range map[string]string{
		"/api/v1/status": `"late": "unscheduled"`, "/": words, "/jobs/report": words,
		"/metrics": `baton_job_late{job="report"} 1`,
	} {
		testsupport.Await(t, path+" to say that the job is not scheduled", func() bool { return strings.Contains(read(path), want) })
	}
	for _, args := range [][]string{{"status"}, {"job", "list"}} {
		out := cluster.Command(t, soon, nil, append(args, "--config", own.ConfigPath())...)
		if !strings.Contains(out.Stdout, words) {
			t.Errorf("%v does not say it:\n%s%s", args, out.Stdout, out.Stderr)
		}
	}
}

// The configuration that the packages install names no lock key. The daemon waits for one, and ends in order.
func TestAnInstalledConfigurationWaitsForALockKey(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	installed, err := os.ReadFile("../../deploy/packages/baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(installed), "redis://127.0.0.1:6379/0", server.URL(), 1) + "http: {listen: \"127.0.0.1:0\"}\n"
	path, log := filepath.Join(t.TempDir(), "baton.yaml"), ""
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logged := func(what string) func() bool {
		return func() bool {
			told, _ := os.ReadFile(log) // it comes to be
			return strings.Contains(string(told), what)
		}
	}
	run := func() *child.Process {
		log = filepath.Join(t.TempDir(), "log") // each process has its own
		p, err := child.StartLogged(exec.Command(cluster.Build(t), "run", "--config", path), log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Kill() }) // it may have ended
		testsupport.Await(t, "the daemon to wait for a lock key", logged("waiting for a lock key"))
		return p
	}
	end := func(p *child.Process) {
		if err := p.Signal(syscall.SIGTERM); err != nil || !p.Wait(soon) || p.Code() != 0 {
			t.Errorf("told to end: %v, code %d", err, p.Code())
		}
	}
	write(text)
	end(run())
	if out := cluster.Command(t, soon, nil, "config", "check", path); out.Code != 2 || !strings.Contains(out.Stderr, "election.lock_key: is empty: write a name") {
		t.Errorf("config check: code %d, %s", out.Code, out.Stderr)
	}
	p := run()
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testsupport.Await(t, "the daemon to say that it still waits", logged("still waiting for a configuration"))
	write(strings.Replace(text, `lock_key: ""`, "lock_key: shop", 1) + reportJob)
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testsupport.Await(t, "the daemon to lead", logged("leading"))
	end(p)
}
