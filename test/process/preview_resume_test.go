package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"baton/internal/operate/direct"
	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/internal/testsupport/cluster"
)

const recordOfPreview = "{shared}:job:articles:preview"

// previewLab is a table of many rows beside its keys, and the job that would make them equal.
type previewLab struct {
	t      *testing.T
	server *testsupport.Redis
	redis  testsupport.Client
	url    string // through the proxy
	proxy  *testsupport.Proxy
	db     *testsupport.Database
}

func newPreviewLab(t *testing.T) *previewLab {
	t.Helper()
	server := testsupport.StartRedis(t)
	l := &previewLab{t: t, server: server, redis: server.Client(t), proxy: server.Proxy(), db: testsupport.SQLite(t)}
	l.url = server.URLThrough(l.proxy)
	l.db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	l.db.Exec(t, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO articles SELECT i, i FROM n")
	l.redis.Do("EVAL", "for i = 1, 20000 do redis.call('SET', 'articles:' .. i, i) end", 0)
	l.redis.Do("MSET", "articles:17", 1, "articles:2500", 1, "articles:28001", 1)
	l.redis.Do("DEL", "articles:9", "articles:5000", "articles:19999")
	return l
}

// file writes the configuration, and returns the arguments of the preview.
func (l *previewLab) file(redis, onMissing string) []string {
	l.t.Helper()
	text := fmt.Sprintf("redis: {url: %q}\nelection: {lock_key: shared}\ndatabases:\n  %sjobs:\n- name: articles\n  schedule: \"@always\"\n  flush:\n"+
		"    from: {type: capture, key: \"articles:<id>\", value: string, on_missing: %s}\n"+
		"    to: {database: main, table: articles, key: [id]}\n    columns: {id: id, views: $value}\n",
		redis, cluster.DatabaseYAML("main", l.db), onMissing)
	path := filepath.Join(l.t.TempDir(), "baton.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return []string{"job", "preview", "articles", "--all", "-o", "json", "--config", path}
}

// whole runs a preview to its end, and fails the test if its progress is still recorded.
func (l *previewLab) whole(args ...string) direct.Plan {
	l.t.Helper()
	p := l.ended(args...)
	if n := l.redis.Num("EXISTS", recordOfPreview); n != 0 {
		l.t.Error("the progress of a complete preview is still recorded")
	}
	return p
}

// ended runs a preview to its end.
func (l *previewLab) ended(args ...string) (p direct.Plan) {
	l.t.Helper()
	out := cluster.Command(l.t, soon, nil, args...)
	if err := json.Unmarshal([]byte(out.Stdout), &p); err != nil {
		l.t.Fatalf("baton %v: %v\n%s%s", args, err, out.Stdout, out.Stderr)
	}
	return p
}

// recorded returns the place from which a preview would continue, or "" if it would begin with the first key.
func (l *previewLab) recorded() string {
	l.t.Helper()
	text, _ := l.redis.Do("GET", recordOfPreview).([]byte)
	var record struct {
		Progress struct{ Place, Behind json.RawMessage }
	}
	if err := json.Unmarshal(text, &record); text != nil && err != nil {
		l.t.Fatalf("the record of a preview: %v: %s", err, text)
	}
	return string(record.Progress.Place) + string(record.Progress.Behind)
}

// interrupted starts a slow preview, and interrupts it after it has recorded that it reached another place. The place does not change while
// a difference waits for its second comparison. The result is the output of the preview.
func (l *previewLab) interrupted(args []string, interrupt func(*child.Process)) string {
	l.t.Helper()
	before, log := l.recorded(), filepath.Join(l.t.TempDir(), "log")
	p, err := child.StartLogged(exec.Command(cluster.Build(l.t), append(args, "--rate", "500")...), log)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = p.Kill() }) // it has ended, unless the test fails
	testsupport.Await(l.t, "a record of the preview's progress", func() bool {
		now := l.recorded()
		return now != before && now != ""
	})
	if interrupt(p); !p.Wait(soon) || p.Code() == 0 {
		l.t.Fatal("the preview was not interrupted")
	}
	said, err := os.ReadFile(log)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(said)
}

func counts(p direct.Plan) [6]int64 {
	return [...]int64{p.Records, p.Rows, p.Insert, p.Change, p.Delete, p.Unfit}
}

// A preview that was killed, cancelled, or that lost Redis continues at its last record, and counts the same as one that was not.
func TestAnInterruptedPreviewOfAllKeysContinues(t *testing.T) {
	t.Parallel()
	l := newPreviewLab(t)
	args := l.file(l.url, "delete")
	want := [...]int64{19998, 20000, 1, 2, 3, 0}
	var all direct.Plan
	whole := l.redis.CallsOf(func() { all = l.whole(args...) })["scan"]
	if counts(all) != want || len(all.Notes) != 0 {
		t.Fatalf("a preview without an interruption: %v, %q, want %v", counts(all), all.Notes, want)
	}
	resume := append(slices.Clone(args), "--resume")
	const remedy = "to continue it, run baton job preview articles --all --resume"
	l.interrupted(args, func(p *child.Process) {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	if said := l.interrupted(resume, func(p *child.Process) {
		if err := p.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}); !strings.Contains(said, remedy) {
		t.Errorf("a preview that was cancelled says: %s", said)
	}
	if said := l.interrupted(resume, func(*child.Process) { l.proxy.Block() }); !strings.Contains(said, remedy) {
		t.Errorf("a preview that lost Redis says: %s", said)
	}
	l.proxy.Unblock()
	rest := l.redis.CallsOf(func() { all = l.whole(resume...) })["scan"]
	if counts(all) != want || len(all.Notes) != 1 || !strings.Contains(all.Notes[0], "continues one that was interrupted at") {
		t.Errorf("the preview after three interruptions: %v, %q, want %v", counts(all), all.Notes, want)
	}
	if rest >= whole {
		t.Errorf("the preview after three interruptions read all keys again: %d SCANs, of %d", rest, whole)
	}
	if p := l.whole(resume...); counts(p) != want || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "no interrupted preview is recorded") {
		t.Errorf("with nothing to continue: %v, %q", counts(p), p.Notes)
	}
}

// After a restart Redis returns other cursors, so all keys are compared again. No key is counted twice.
func TestAPreviewThatARestartOfRedisInterruptedCountsNothingTwice(t *testing.T) {
	t.Parallel()
	l := newPreviewLab(t)
	args := l.file(l.url, "delete")
	l.interrupted(args, func(p *child.Process) { _ = p.Kill() })
	l.redis.Do("SAVE")
	l.server.Restart()
	l.redis = l.server.Client(t)
	p := l.whole(append(args, "--resume")...)
	if want := [...]int64{19998, 20000, 1, 2, 3, 0}; counts(p) != want || !strings.Contains(strings.Join(p.Notes, "\n"), "Redis restarted") {
		t.Errorf("the preview after a restart of Redis: %v, %q, want %v", counts(p), p.Notes, want)
	}
}

// The result of a complete preview is worth more than the removal of its record. The next preview says that it replaces the record.
func TestACompletePreviewIsPrintedAlthoughItsRecordStays(t *testing.T) {
	t.Parallel()
	l := newPreviewLab(t)
	args := l.file(l.url, "delete")
	l.redis.Do("ACL", "SETUSER", "default", "-unlink")
	want := [...]int64{19998, 20000, 1, 2, 3, 0}
	if p := l.ended(args...); counts(p) != want || !strings.Contains(strings.Join(p.Notes, "\n"), "the next preview needs no --resume") {
		t.Errorf("a preview whose record cannot be removed: %v, %q, want %v", counts(p), p.Notes, want)
	}
	l.redis.Do("ACL", "SETUSER", "default", "+unlink")
	if p := l.whole(args...); counts(p) != want || !strings.Contains(strings.Join(p.Notes, "\n"), "was not told to --resume it") {
		t.Errorf("a preview that replaces a record: %v, %q, want %v", counts(p), p.Notes, want)
	}
}

// The counts of another mapping, of another Redis, or of a table that was made anew, say nothing about the present one.
func TestAPreviewOfAnotherMappingIsNotContinued(t *testing.T) {
	t.Parallel()
	l := newPreviewLab(t)
	l.interrupted(l.file(l.url, "delete"), func(p *child.Process) { _ = p.Kill() })
	record := l.redis.Do("GET", recordOfPreview)
	for name, c := range map[string]struct {
		args    []string
		deletes int64
	}{"mapping": {l.file(l.url, "ignore"), 0}, "Redis": {l.file(l.server.URL(), "delete"), 3}} {
		l.redis.Do("SET", recordOfPreview, record)
		p := l.whole(append(c.args, "--resume")...)
		if p.Records != 19998 || p.Delete != c.deletes ||
			!strings.Contains(strings.Join(p.Notes, "\n"), "has changed since the interrupted preview") {
			t.Errorf("a preview of another %s: %v, %q", name, counts(p), p.Notes)
		}
	}
}
