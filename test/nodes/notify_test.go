package nodes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// note is what a webhook is told, as somebody reads it who knows the documentation only.
type note struct {
	ID       string `json:"id"`
	Event    string `json:"event"`
	Job      string `json:"job"`
	NodeID   string `json:"node_id"`
	From     string `json:"from"`
	Reason   string `json:"reason"`
	Text     string `json:"text"`
	State    string `json:"state"`
	ExitCode *int   `json:"exit_code"`
	Epoch    int64  `json:"epoch"`
	LockKey  string `json:"lock_key"`
}

// hook is a web server that people are told by. Its address holds a secret.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	notes  []note
	pings  int
	tried  int
	refuse bool // it answers 500
}

const hookSecret = "T0PSECRET"

func newHook(t *testing.T) *hook {
	h := &hook{}
	hanging := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /"+hookSecret, func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tried++
		var n note
		switch err := json.NewDecoder(r.Body).Decode(&n); {
		case err != nil:
			t.Error(err)
		case h.refuse:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			h.notes = append(h.notes, n)
		}
	})
	mux.HandleFunc("GET /alive/"+hookSecret, func(http.ResponseWriter, *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pings++
	})
	mux.HandleFunc("/hang/"+hookSecret, func(http.ResponseWriter, *http.Request) {
		h.mu.Lock()
		h.tried++
		h.mu.Unlock()
		<-hanging
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(func() { close(hanging); h.Close() })
	return h
}

// about are the notes of a kind.
func (h *hook) about(event string) []note {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []note
	for _, n := range h.notes {
		if n.Event == event {
			list = append(list, n)
		}
	}
	return list
}

func (h *hook) count() (tried, pings int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tried, h.pings
}

func (h *hook) refuses(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = yes
}

// secretive fails the test if a log tells where the hook is.
func secretive(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, n := range c.Nodes {
		if strings.Contains(n.Log(), hookSecret) {
			t.Errorf("the log of %s tells the secret", n.ID)
		}
	}
}

// lines is how many lines a file has; 0 if there is none.
func lines(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func TestAJobThatFailsIsToldOnceAndThatItRecoversToo(t *testing.T) {
	t.Parallel()
	server, h, dir := testsupport.StartRedis(t), newHook(t), t.TempDir()
	runs, flag, told := filepath.Join(dir, "runs"), filepath.Join(dir, "flag"), filepath.Join(dir, "told")
	urlFile := filepath.Join(dir, "url")
	if err := os.WriteFile(urlFile, []byte(h.URL+"/"+hookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, TTL: untilReleased, RedisURL: server.URL(),
		TopYAML: fmt.Sprintf(`
notify:
- {name: web, webhook: {url_file: %q}}
- {name: pager, on: [failed], command: [/bin/sh, -c, 'cat >> "$0"', %q]}
`, urlFile, told),
		JobsYAML: fmt.Sprintf(`
- name: report
  schedule: "@every 1s"
  command: 'echo run >> %s; test -e %s || exit 3'
  shell: true
  dead_mans_switch: %s/alive/%s
`, runs, flag, h.URL, hookSecret),
	})
	c.Await(soon, "the failure to be told", func() bool { return len(h.about("failed")) > 0 })
	first := lines(t, runs)
	c.Await(soon, "three more runs", func() bool { return lines(t, runs) >= first+3 })
	failed := h.about("failed")
	if n := failed[0]; len(failed) != 1 || n.Job != "report" || n.NodeID != "n1" || n.State != "failed" || n.ExitCode == nil || *n.ExitCode != 3 ||
		n.ID == "" || n.Epoch == 0 || n.LockKey != "baton" || !strings.HasPrefix(n.Text, "Job report failed on n1: ") {
		t.Errorf("told %+v", failed)
	}
	if _, pings := h.count(); pings > 0 {
		t.Error("a failure was taken for a sign of life")
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Await(soon, "the recovery to be told, and two signs of life", func() bool {
		_, pings := h.count()
		return len(h.about("recovered")) == 1 && pings >= 2
	})
	if n := len(h.about("failed")); n != 1 {
		t.Errorf("the failure was told %d times", n)
	}
	c.Await(soon, "the command to have been told", func() bool { return lines(t, told) == 1 })
	var n note
	if b, err := os.ReadFile(told); err != nil || json.Unmarshal(b, &n) != nil || n.Event != "failed" || n.Job != "report" || n.ID != failed[0].ID {
		t.Errorf("the command was told %+v, %v", n, err)
	}
	secretive(t, c)
}

// Neither a job nor the end of the daemon waits for a webhook that hangs.
func TestAWebhookThatHangsDelaysNothing(t *testing.T) {
	t.Parallel()
	server, h := testsupport.StartRedis(t), newHook(t)
	runs := filepath.Join(t.TempDir(), "runs")
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, TTL: untilReleased, RedisURL: server.URL(),
		TopYAML: fmt.Sprintf("notify: [{name: web, timeout: 5m, webhook: %s/hang/%s}]\n", h.URL, hookSecret),
		JobsYAML: fmt.Sprintf(`
- {name: bad, schedule: "@every 1s", command: [/bin/false], dead_mans_switch: %[1]s/hang/%[2]s?bad}
- {name: good, schedule: "@every 1s", command: 'date +%%s%%3N >> %[3]s', shell: true, dead_mans_switch: %[1]s/hang/%[2]s}
`, h.URL, hookSecret, runs),
	})
	leader := c.AwaitLeader(soon)
	c.Await(soon, "both requests to hang", func() bool { tried, _ := h.count(); return tried >= 2 })
	first := lines(t, runs)
	c.Await(soon, "four more runs", func() bool { return lines(t, runs) >= first+4 })
	// While the requests hang for longer than this test may take, the lock is released and the process ends.
	leader.Signal(syscall.SIGTERM)
	other := c.AwaitOther(leader, soon)
	if code := leader.Wait(soon); code != 0 {
		t.Errorf("code %d", code)
	}
	c.Await(soon, "the history to say that the lock was released", func() bool {
		s, _ := other.Status()
		return len(s.Events) >= 2 && s.Events[1].Event == "released"
	})
	secretive(t, c)
}

// What a leader had to tell when it was told to end, it tells after it has released the lock.
func TestAHandoverLosesNoNotification(t *testing.T) {
	t.Parallel()
	server, h := testsupport.StartRedis(t), newHook(t)
	h.refuses(true)
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, TTL: untilReleased, RedisURL: server.URL(),
		TopYAML:  fmt.Sprintf("notify: [{name: web, on: [failed], webhook: %s/%s}]\n", h.URL, hookSecret),
		JobsYAML: `- {name: bad, schedule: "@every 1s", command: [/bin/false]}`,
	})
	leader := c.AwaitLeader(soon)
	c.Await(soon, "attempts that fail", func() bool { tried, _ := h.count(); return tried >= 2 })
	leader.Signal(syscall.SIGTERM)
	other := c.AwaitOther(leader, soon)
	h.refuses(false)
	c.Await(soon, "the failure to be told", func() bool { return len(h.about("failed")) > 0 })
	if code := leader.Wait(soon); code != 0 {
		t.Errorf("code %d", code)
	}
	c.Await(soon, "runs of the next leader", func() bool {
		s, ok := other.Status()
		return ok && len(s.Jobs) == 1 && s.Jobs[0].LastRun != nil && s.Jobs[0].LastRun.NodeID == other.ID
	})
	if failed := h.about("failed"); len(failed) != 1 || failed[0].NodeID != leader.ID {
		t.Errorf("told %+v, want once, of %s: the next leader knows that it was told", failed, leader.ID)
	}
	secretive(t, c)
}

func TestTheNextLeaderTellsThatTheLeaderChanged(t *testing.T) {
	t.Parallel()
	server, h := testsupport.StartRedis(t), newHook(t)
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, RedisURL: server.URL(),
		TopYAML: fmt.Sprintf("notify: [{name: web, on: [leader_changed], webhook: {url: %s/%s}}]\n", h.URL, hookSecret),
	})
	first := c.AwaitLeader(soon)
	changes := func(n int) note {
		t.Helper()
		c.Await(soon, "the change to be told", func() bool { return len(h.about("leader_changed")) >= n })
		all := h.about("leader_changed")
		if len(all) != n {
			t.Fatalf("told %+v, want %d changes", all, n)
		}
		return all[n-1]
	}
	first.Kill()
	second := c.AwaitOther(first, soon)
	if n := changes(1); n.NodeID != second.ID || n.From != first.ID || n.Reason != "crashed" || n.LockKey != lockKey || n.Epoch == 0 {
		t.Errorf("after a crash: %+v", n)
	}
	first.Start()
	listed(t, c)
	ordered(t, c, "stepdown")
	if n := changes(2); n.NodeID != first.ID || n.From != second.ID || n.Reason != "stepped_down" {
		t.Errorf("after a step-down: %+v", n)
	}
	if code := first.Terminate(soon); code != 0 {
		t.Errorf("code %d", code)
	}
	if n := changes(3); n.NodeID != second.ID || n.From != first.ID || n.Reason != "released" {
		t.Errorf("after a shutdown: %+v", n)
	}
	secretive(t, c)
}
