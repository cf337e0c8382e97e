package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/testsupport/openapi"
)

const testToken = "0123456789abcdef0123456789abcdef"

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apiLab is a leading node with a job of each kind and a dead letter, and the node's API.
type apiLab struct {
	*jobLab
	node   *running
	socket string
	doc    map[string]any
}

func newAPILab(t *testing.T) *apiLab {
	l := &apiLab{jobLab: newJobLab(t), socket: filepath.Join(t.TempDir(), "admin.sock")}
	l.job("views", "@yearly")
	l.command("report", "@yearly", "echo one; echo zwei ü; exit 0")
	l.command("hang", "@yearly", "exec sleep 60")
	l.config.HTTP.TokenFile = writeFile(t, "token", testToken+"\n")
	l.config.HTTP.AdminSocket = l.socket
	l.do("HSET", "views", "1", "5", "no-number", "7")
	l.node = l.start()
	code, body := l.ask(http.MethodGet, "/api/v1/openapi.json", "", "")
	if err := json.Unmarshal(body, &l.doc); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	return l
}

func (l *apiLab) ask(method, path, token, body string) (int, []byte) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+l.node.address+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, text
}

// described sends a request with the token, and requires the answer of the API's description.
func (l *apiLab) described(method, route, path string, want int, body string) []byte {
	l.t.Helper()
	code, text := l.ask(method, "/api/v1"+path, testToken, body)
	if code != want {
		l.t.Errorf("%s %s: %d, want %d: %s", method, path, code, want, text)
	}
	if why := openapi.ReplyMisfit(l.doc, method, "/api/v1"+route, code, text); why != "" {
		l.t.Errorf("%s: %s", why, text)
	}
	return text
}

func (l *apiLab) client(server, tokenFile string) operator[*operate.Client] {
	l.t.Helper()
	c, err := operate.DialServer(server, tokenFile, "")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return operator[*operate.Client]{c}
}

func TestEveryRouteOfARunningNodeAnswersAsItIsDescribed(t *testing.T) {
	t.Parallel()
	l := newAPILab(t)
	var begun struct {
		RunID string `json:"run_id"`
	}
	for _, name := range []string{"views", "report"} {
		if err := json.Unmarshal(l.described("POST", "/jobs/{job}/run", "/jobs/"+name+"/run", 200, `{"by": "alice", "reason": "try"}`), &begun); err != nil {
			t.Fatal(err)
		}
		if run := l.ended(name, begun.RunID); run.By != "by alice via the API: try" {
			t.Errorf("%+v", run)
		}
	}
	var letters struct{ Letters []operate.LetterKey }
	if err := json.Unmarshal(l.described("GET", "/dead-letters", "/dead-letters?job=views", 200, ""), &letters); err != nil || len(letters.Letters) != 1 {
		t.Fatalf("%v %+v", err, letters)
	}
	id := letters.Letters[0].ID
	for _, c := range []struct {
		route, path string
		code        int
	}{
		{"/status", "/status", 200}, {"/leader", "/leader", 200}, {"/nodes", "/nodes", 200}, {"/jobs", "/jobs", 200},
		{"/jobs/{job}", "/jobs/report", 200}, {"/jobs/{job}", "/jobs/none", 404}, {"/jobs/{job}", "/jobs/a%2F..%2Fb", 404},
		{"/jobs/{job}/history", "/jobs/report/history?n=5", 200}, {"/jobs/{job}/history", "/jobs/none/history", 404}, {"/jobs/{job}/history", "/jobs/report/history?n=0", 400}, {"/jobs/{job}/history", "/jobs/report/history?before=x", 400},
		{"/jobs/{job}/next", "/jobs/report/next?n=3&from=2026-01-01T00:00:00Z", 200}, {"/jobs/{job}/next", "/jobs/none/next", 404},
		{"/jobs/{job}/runs/{run}", "/jobs/report/runs/" + begun.RunID, 200}, {"/jobs/{job}/runs/{run}", "/jobs/report/runs/none", 404},
		{"/jobs/{job}/runs/{run}/output", "/jobs/report/runs/" + begun.RunID + "/output?from=4", 200}, {"/jobs/{job}/runs/{run}/output", "/jobs/views/runs/x/output", 404},
		{"/jobs/{job}/runs/{run}/output", "/jobs/report/runs/none/output", 404},
		{"/events", "/events?n=5", 200}, {"/samples", "/samples", 200}, {"/explain/{node}", "/explain/a", 200}, {"/explain/{node}", "/explain/none", 200},
		{"/dead-letters", "/dead-letters?n=2&whole=true&text=no-number", 200}, {"/dead-letters", "/dead-letters?database=none", 422}, {"/dead-letters", "/dead-letters?nothing=1", 400},
		{"/dead-letters/keys", "/dead-letters/keys?job=views", 200}, {"/dead-letters/reasons", "/dead-letters/reasons", 200},
		{"/dead-letters/{id}", "/dead-letters/" + id[:12], 200}, {"/dead-letters/{id}", "/dead-letters/00000000", 404}, {"/openapi.json", "/openapi.json", 200},
	} {
		l.described("GET", c.route, c.path, c.code, "")
	}
	for _, c := range []struct {
		route, path, body string
		code              int
	}{
		{"/jobs/{job}/run", "/jobs/none/run", "", 404}, {"/jobs/{job}/cancel", "/jobs/report/cancel", "", 200}, {"/jobs/{job}/pause", "/jobs/report/pause", `{"for": "1h"}`, 200},
		{"/jobs/{job}/run", "/jobs/report/run", "", 409}, {"/jobs/{job}/resume", "/jobs/report/resume", "", 200},
		{"/jobs/pause", "/jobs/pause", "", 200}, {"/jobs/resume", "/jobs/resume", `{"by": "bob"}`, 200},
		{"/dead-letters/{id}/replay", "/dead-letters/" + id + "/replay", "{}", 200}, {"/dead-letters/replay", "/dead-letters/replay", `{"letters": [{"id": "` + id + `", "job": "views", "database": "main"}]}`, 200},
		{"/dead-letters/replay", "/dead-letters/replay", `{"letters": [{"id": "x", "job": "views", "database": "none"}]}`, 422},
		{"/dead-letters/drop", "/dead-letters/drop", `{"letters": [{"id": "none", "job": "views", "database": "main"}]}`, 200},
		{"/dead-letters/{id}/drop", "/dead-letters/" + id + "/drop", "", 200}, {"/dead-letters/{id}/drop", "/dead-letters/" + id + "/drop", "", 404},
		{"/stepdown", "/stepdown", `{"to": "none"}`, 409}, {"/stepdown", "/stepdown", `{"lock": "none"}`, 422},
		{"/pause", "/pause", `{"by": "alice", "reason": "upgrade"}`, 200}, {"/jobs/{job}/run", "/jobs/report/run", "", 409}, {"/stepdown", "/stepdown", "", 409},
		{"/resume", "/resume", `{"wait": "20s"}`, 200}, {"/reload", "/reload", "", 422},
	} {
		l.described("POST", c.route, c.path, c.code, c.body)
		if code, _ := l.ask("POST", "/api/v1"+c.path, "", c.body); code != 401 {
			t.Errorf("%s without a token: %d", c.path, code)
		}
	}
	for _, path := range []string{"/dead-letters", "/dead-letters/keys", "/dead-letters/" + id, "/jobs/report/runs/" + begun.RunID + "/output"} {
		if code, text := l.ask("GET", "/api/v1"+path, "", ""); code != 401 {
			t.Errorf("%s without a token: %d %s", path, code, text)
		}
	}
	told := l.node.logs.FilterMessage("an order was carried out").FilterField(zap.String("with", "the token")).Len()
	if told < 8 {
		t.Errorf("the log tells of %d orders", told)
	}
	if err := l.node.end(); err != nil {
		t.Error(err)
	}
}

func TestCommandsGetFromANodeWhatTheyGetFromTheServers(t *testing.T) {
	t.Parallel()
	l := newAPILab(t)
	for _, c := range []operator[*operate.Client]{l.client("http://"+l.node.address, l.config.HTTP.TokenFile), l.client("unix://"+l.socket, "")} {
		ctx := t.Context()
		run, err := c.run(ctx, "report", "by alice: try", false)
		if err != nil {
			t.Fatal(err)
		}
		ended, err := operate.WatchRun(ctx, c.to, "report", run.Run.ID, func(operate.JobRun) {})
		if err != nil || !ended.Succeeded() || !strings.HasPrefix(ended.Run.By, "by alice via the ") {
			t.Errorf("%v %+v", err, ended)
		}
		var out bytes.Buffer
		if _, err := operate.ShowLogs(ctx, c.to, operate.JobLogs{Job: "report", Tail: -1, Note: func(string) {}}, &out); err != nil || out.String() != "one\nzwei ü\n" {
			t.Errorf("%v %q", err, out.String())
		}
		history, err := c.to.History(ctx, "report", "", 10)
		want, wrong := l.remote.to.History(ctx, "report", "", 10)
		if text, wanted := asJSON(t, history), asJSON(t, want); err != nil || wrong != nil || text != wanted {
			t.Errorf("%v %v\n%s\n%s", err, wrong, text, wanted)
		}
		runs, err := c.runs(ctx, "report", 1)
		wantRuns, wrong := l.remote.runs(ctx, "report", 1)
		if text, wanted := asJSON(t, runs), asJSON(t, wantRuns); err != nil || wrong != nil || text != wanted {
			t.Errorf("%v %v\n%s\n%s", err, wrong, text, wanted)
		}
		now := time.Now()
		next, err := c.to.Next(ctx, "report", now, 3)
		wantNext, wrong := l.remote.to.Next(ctx, "report", now, 3)
		if text, wanted := asJSON(t, next), asJSON(t, wantNext); err != nil || wrong != nil || text != wanted {
			t.Errorf("%v %v\n%s\n%s", err, wrong, text, wanted)
		}
		seen, err := c.to.Election(ctx)
		straight, wrong := l.remote.to.Election(ctx)
		if err != nil || wrong != nil || seen.Leader == nil || seen.Leader.NodeID != "a" || seen.LockKey != straight.LockKey || straight.Leader == nil || straight.Leader.NodeID != "a" {
			t.Errorf("%v %v %+v %+v", err, wrong, seen.Leader, straight.Leader)
		}
		if x, err := c.to.Explain(ctx, ""); err != nil || !x.Leads || x.NodeID != "a" {
			t.Errorf("%v %+v", err, x)
		}
		if events, err := c.to.Events(ctx, 5); err != nil || len(events) == 0 {
			t.Errorf("%v %v", err, events)
		}
		for _, o := range []operate.Operator{c.to, l.remote.to} {
			jobs := o.Configured(ctx)
			if !operate.IsCommand(jobs, "report") || operate.IsCommand(jobs, "views") || o.Zone(ctx, "report").String() != "UTC" || len(jobs) != len(l.config.Jobs) {
				t.Errorf("what the configuration says is not told: %+v", jobs)
			}
		}
		l.ordersByClient(ctx, c)
		l.lettersByClient(ctx, c)
		l.errorsOfClient(ctx, c)
	}
	// The first request has no token, and the second request goes to an address without a server.
	if _, err := l.client("http://"+l.node.address, "").run(t.Context(), "report", "by x", false); !errors.Is(err, operate.ErrNotAllowed) || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("no token: %v", err)
	}
	if _, err := l.client("http://"+l.node.address, writeFile(t, "wrong", strings.Repeat("x", 32))).to.Snapshot(t.Context()); !errors.Is(err, operate.ErrNotAllowed) {
		t.Errorf("a wrong token: %v", err)
	}
	if _, err := operate.ShowLogs(t.Context(), l.client("unix:///nowhere/admin.sock", "").to, operate.JobLogs{Job: "report"}, io.Discard); !errors.Is(err, operate.ErrNoServer) || errors.Is(err, operate.ErrNoOutput) {
		t.Errorf("logs of a node that is not there: %v", err)
	}
	if _, err := l.client("unix:///nowhere/admin.sock", "").to.Snapshot(t.Context()); !errors.Is(err, operate.ErrNoServer) {
		t.Errorf("no socket: %v", err)
	}
	for _, server := range []string{"", "db1:9747", "ftp://db1", "http://u:p@db1", "https://db1/x", "unix://x"} {
		if _, err := operate.DialServer(server, "", ""); err == nil || strings.Contains(err.Error(), ":p@") {
			t.Errorf("server %q: %v", server, err)
		}
	}
	if _, err := operate.DialServer("http://10.0.0.7:9747", l.config.HTTP.TokenFile, ""); !errors.Is(err, operate.ErrNotAllowed) {
		t.Errorf("the token would be sent over http: %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "+00:00", "Z")
}

func (l *apiLab) ordersByClient(ctx context.Context, c operator[*operate.Client]) {
	t := l.t
	run, err := c.run(ctx, "hang", "by bob", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(ctx, "hang", "by alice", false); err == nil || !strings.Contains(err.Error(), "already running: its run "+run.Run.ID) {
		t.Errorf("a second one: %v", err)
	}
	if done, err := c.cancel(ctx, "hang", run.Run.ID, "by alice: enough"); err != nil || len(done.Runs) != 1 {
		t.Errorf("%v %+v", err, done)
	}
	if ended, err := operate.WatchRun(ctx, c.to, "hang", run.Run.ID, func(operate.JobRun) {}); err != nil || ended.Run.State != "cancelled" {
		t.Errorf("%v %+v", err, ended)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	if p, err := c.pauseJob(ctx, "report", "by alice: x", until); err != nil || p.Was != nil || p.Code != operate.CodeDone {
		t.Errorf("%v %+v", err, p)
	}
	if _, err := c.run(ctx, "report", "by alice", false); err == nil || !strings.Contains(err.Error(), "baton job resume report ends the pause") {
		t.Errorf("paused: %v", err)
	}
	if p, err := c.resumeJob(ctx, "report", "by alice"); err != nil || p.Was == nil || !strings.Contains(p.Was.Reason, "alice") {
		t.Errorf("%v %+v", err, p)
	}
	for _, told := range l.node.logs.FilterField(zap.String("action", "resume_job")).All() {
		if by, _ := told.ContextMap()["by"].(string); !strings.HasPrefix(by, "by alice via the ") {
			t.Errorf("the log tells that the job was resumed %q", by)
		}
	}
	paused, err := c.pause(ctx, "by alice: upgrade", 20*time.Second)
	if err != nil || paused.From != "a" {
		t.Errorf("%v %+v", err, paused)
	}
	if _, err := c.stepDown(ctx, "", "asked by alice", time.Second); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("stepdown of nobody: %v", err)
	}
	if _, err := c.run(ctx, "report", "by alice", false); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("no node leads: %v", err)
	}
	if resumed, err := c.resume(ctx, "by alice", 20*time.Second); err != nil || resumed.NodeID != "a" || !strings.Contains(resumed.Was.Reason, "upgrade") {
		t.Errorf("%v %+v", err, resumed)
	}
}

func (l *apiLab) lettersByClient(ctx context.Context, c operator[*operate.Client]) {
	t := l.t
	l.do("HSET", "views", "1", "5", "no-number", "7")
	run, err := c.run(ctx, "views", "by alice", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operate.WatchRun(ctx, c.to, "views", run.Run.ID, func(operate.JobRun) {}); err != nil {
		t.Fatal(err)
	}
	list, err := c.to.Letters(ctx, operate.LetterFilter{Job: "views", Whole: true}, 10)
	want, wrong := l.remote.to.Letters(ctx, operate.LetterFilter{Job: "views", Whole: true}, 10)
	if text, wanted := asJSON(t, list), asJSON(t, want); err != nil || wrong != nil || text != wanted || len(list) != 1 {
		t.Fatalf("%v %v\n%s\n%s", err, wrong, text, wanted)
	}
	found, err := c.to.Letters(ctx, operate.LetterFilter{ID: list[0].ID[:12]}, 1)
	if err != nil || found[0].Key() != list[0].Key() {
		t.Errorf("%v %+v", err, found)
	}
	reasons, err := c.to.Reasons(ctx, operate.LetterFilter{})
	if err != nil || len(reasons) != 1 || reasons[0].Letters != 1 {
		t.Errorf("%v %+v", err, reasons)
	}
	for reason, want := range map[string]int{reasons[0].Reason: 1, "another": 0} {
		some, err := c.to.Letters(ctx, operate.LetterFilter{Reason: reason}, 10)
		keys, wrong := c.to.LetterKeys(ctx, operate.LetterFilter{Job: "views", Reason: reason}, 10)
		if err != nil || wrong != nil || len(some) != want || len(keys) != want {
			t.Errorf("of reason %q: %+v %+v, %v %v; want %d", reason, some, keys, err, wrong, want)
		}
	}
	keys, err := c.to.LetterKeys(ctx, operate.LetterFilter{Job: "views", Text: "no-number"}, 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v %+v", err, keys)
	}
	replay := operate.Order{Kind: operate.KindReplay, Letters: keys}
	if out, err := c.to.Do(ctx, replay); err != nil || len(out.Letters) != 1 || out.Letters[0].Outcome != direct.ReplayRefused {
		t.Errorf("%v %+v", err, out)
	}
	if out, err := c.to.Do(ctx, operate.Order{Kind: operate.KindDrop, Letters: keys}); err != nil || out.Dropped != 1 {
		t.Errorf("%v %+v", err, out)
	}
	if _, err := c.to.Letters(ctx, operate.LetterFilter{ID: list[0].ID}, 1); !errors.Is(err, operate.ErrNoLetter) {
		t.Errorf("a letter that is gone: %v", err)
	}
}

func (l *apiLab) errorsOfClient(ctx context.Context, c operator[*operate.Client]) {
	t := l.t
	for what, err := range map[string]error{
		"history": second(c.to.History(ctx, "none", "", 1)),
		"run":     second(c.run(ctx, "none", "by x", false)),
		"cancel":  second(c.cancel(ctx, "none", "", "by x")),
		"pause":   second(c.pauseJob(ctx, "none", "by x", time.Time{})),
		"next":    second(c.to.Next(ctx, "none", time.Now(), 1)),
	} {
		if !errors.Is(err, operate.ErrNoJob) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := operate.ShowLogs(ctx, c.to, operate.JobLogs{Job: "views"}, io.Discard); !errors.Is(err, operate.ErrNoOutput) {
		t.Error(err)
	}
	if _, err := c.to.Letters(ctx, operate.LetterFilter{Database: "none"}, 1); !errors.Is(err, operate.ErrDeadUsage) {
		t.Error(err)
	}
	if _, err := c.to.Do(ctx, operate.Order{Kind: operate.KindReload, By: "x"}); err == nil || !strings.Contains(err.Error(), "the old configuration stays in force:\nthis node has no configuration file") {
		t.Error(err)
	}
	if _, err := c.stepDown(ctx, "none", "asked by x", time.Second); err == nil || !strings.Contains(err.Error(), `"none" is not among the live nodes`) {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }
