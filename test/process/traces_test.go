package process

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/collector"
)

// traced is an installation that sends traces, and a database with a table.
type traced struct {
	*cluster.Cluster
	t         *testing.T
	conn      redis.Conn
	db        *testsupport.Database
	collector *collector.Collector
}

const tracedSecret = "top-secret-key"

func startTraced(t *testing.T, nodes int, jobs string, env ...string) *traced {
	t.Helper()
	server := testsupport.StartRedis(t)
	l := &traced{t: t, conn: server.Conn(), db: testsupport.SQLite(t), collector: collector.Start(t)}
	l.db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	lease := ttl
	if nodes == 1 { // there is one term
		lease = untilLost
	}
	l.Cluster = cluster.Start(t, cluster.Options{
		Nodes: nodes, TTL: lease, LockKey: lockKey, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", l.db),
		JobsYAML: jobs, LogLevel: "debug", Env: append([]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + l.collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=" + tracedSecret, "OTEL_BSP_SCHEDULE_DELAY=50",
			"TRACEPARENT=00-11111111111111111111111111111111-1111111111111111-01", "TRACESTATE=a=b",
		}, env...),
	})
	l.AwaitLeader(soon)
	return l
}

// flush is a job that adds up counters.
func flush(name, schedule string) string {
	return fmt.Sprintf("- name: %s\n  schedule: %q\n  flush:\n    from: {type: counters, key: %s}\n"+
		"    to: {database: main, table: articles, key: [id]}\n    columns: {id: $field, views: {from: $value, op: add}}\n", name, schedule, name)
}

// span waits for a span.
func (l *traced) span(name string, is func(collector.Span) bool) (found collector.Span) {
	l.t.Helper()
	l.Await(soon, "a span "+name, func() bool {
		for _, s := range l.collector.Named(name) {
			if is == nil || is(s) {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

func (l *traced) do(command string, args ...any) {
	l.t.Helper()
	if _, err := l.conn.Do(command, args...); err != nil {
		l.t.Fatal(err)
	}
}

// metric is the value of a metric of a node.
func metric(t *testing.T, n *cluster.Node, name string) string {
	t.Helper()
	resp, err := http.Get(n.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func digits(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }

// A collector gets terms, runs and batches, each found from the other, and a command knows its parent.
func TestTracesOfANode(t *testing.T) {
	t.Parallel()
	l := startTraced(t, 1, flush("views", "@every 1s")+flush("hits", "@always")+
		"- {name: report, schedule: \"@every 1s\", shell: true, command: \"env | grep -E '^(TRACE|OTEL|BATON_RUN_ID)' | sort; exit 3\"}\n")
	n := l.Leader()
	l.do("HSET", "views", "1", "10", "2", "20")
	l.do("HSET", "hits", "7", "70")

	batch := l.span("batch", func(s collector.Span) bool { return s.Attributes["baton.job"] == "views" })
	run := l.span("run views", nil)
	if a := run.Attributes; batch.TraceID() != run.TraceID() || batch.ParentID() != run.ID() || run.ParentID() != "" ||
		run.TraceID() != digits(a["baton.run_id"]) || a["baton.rows"] != "2" || a["baton.result"] != "succeeded" || a["baton.trigger"] != "schedule" ||
		a["baton.node_id"] != "n1" || a["baton.attempt"] != "1" || run.Failed() {
		t.Errorf("run %v with batch %v", run, batch)
	}
	if slot, err := time.Parse(time.RFC3339, run.Attributes["baton.slot"]); err != nil || slot.IsZero() {
		t.Errorf("slot: %v", err)
	}
	if a := batch.Attributes; a["baton.rows"] != "2" || a["baton.bytes"] != "8" || a["baton.database"] != "main" || a["db.system.name"] != "sqlite" ||
		a["db.collection.name"] != "articles" || batch.StartTimeUnixNano < run.StartTimeUnixNano || batch.EndTimeUnixNano > run.EndTimeUnixNano {
		t.Errorf("batch %v of run %v", batch, run)
	}

	// A run without an end has a trace for each of its flushes.
	round := l.span("flush hits", nil)
	part := l.span("batch", func(s collector.Span) bool { return s.Attributes["baton.job"] == "hits" })
	if part.ParentID() != round.ID() || part.TraceID() != round.TraceID() || round.Attributes["baton.rows"] != "1" || len(round.Links) != 1 {
		t.Errorf("flush %v with batch %v", round, part)
	}

	failed := l.span("run report", nil)
	if !failed.Failed() || failed.Status.Message != "exit code 3" || failed.Attributes["process.exit.code"] != "3" {
		t.Errorf("run %v", failed)
	}
	id := failed.Attributes["baton.run_id"]
	want := fmt.Sprintf("BATON_RUN_ID=%s\nTRACEPARENT=00-%s-%s-01\n", id, failed.TraceID(), failed.ID())
	if out := l.Command("job", "logs", "report", "--run", id, "--config", n.ConfigPath()); out.Stdout != want {
		t.Errorf("the command's environment has\n%s\nwant\n%s%s", out.Stdout, want, out.Stderr)
	}

	if code := n.Terminate(soon); code != 0 {
		t.Errorf("exit code %d", code)
	}
	term := l.span("term", nil)
	for _, s := range []collector.Span{run, failed} {
		if len(s.Links) != 1 || string(s.Links[0].TraceId) != string(term.TraceId) || string(s.Links[0].SpanId) != string(term.SpanId) {
			t.Errorf("%v has no link to the term %v", s, term)
		}
	}
	if a := term.Attributes; term.TraceID() != digits(a["baton.owner"]) || a["baton.lock_key"] != lockKey || a["baton.ended"] != "released" || a["baton.reason"] == "" ||
		a["baton.epoch"] != run.Attributes["baton.epoch"] || a["baton.node_id"] != "n1" || len(a["baton.incarnation"]) != 36 || term.Failed() {
		t.Errorf("term %v", term)
	}
	always := l.span("run hits", nil)
	if always.ID() != fmt.Sprintf("%x", round.Links[0].SpanId) || always.Attributes["baton.result"] != "cancelled" || always.Failed() {
		t.Errorf("run %v, which %v is linked to", always, round)
	}
	for name, n := range map[string]int{"run views": len(l.collector.Named("run views")), "run hits": len(l.collector.Named("run hits")), "term": len(l.collector.Named("term"))} {
		if n != 1 { // runs that find nothing are none
			t.Errorf("%d spans %s", n, name)
		}
	}
	log := n.Log()
	if !strings.Contains(log, `"trace_id":"`+failed.TraceID()+`"`) {
		t.Error("the run's line in the log has no trace")
	}
	if strings.Contains(log, tracedSecret) {
		t.Error("the log has the secret of the headers")
	}
	if h := l.collector.Headers(); h[0].Get("api-key") != tracedSecret {
		t.Errorf("headers %v", h[0])
	}
}

// Who takes over tells of the run that was lost with its leader, under the ids that its command had.
func TestALostRunIsInItsTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startTraced(t, 2, "- {name: slow, schedule: \"@every 1s\", shell: true, command: \"echo $BATON_RUN_ID $TRACEPARENT >> runs; exec sleep 1000\", working_dir: "+dir+"}\n")
	old := l.Leader()
	var run, parent string
	l.Await(soon, "a run", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "runs"))
		run, parent, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
		return err == nil && parent != ""
	})
	old.Kill()
	lost := l.span("run slow", nil)
	if want := fmt.Sprintf("00-%s-%s-01", lost.TraceID(), lost.ID()); parent != want {
		t.Errorf("the command's parent was %s, and the span is %s", parent, want)
	}
	if a := lost.Attributes; !lost.Failed() || a["baton.run_id"] != run || a["baton.result"] != "lost" || a["baton.node_id"] == lost.Resource["service.instance.id"] {
		t.Errorf("%v of %v", lost, lost.Resource)
	}
}

// A collector that hangs holds up neither flushes nor the election, and not the end for long.
func TestACollectorThatHangsHoldsUpNoNode(t *testing.T) {
	t.Parallel()
	l := startTraced(t, 1, flush("hits", "@always"), "OTEL_BSP_MAX_QUEUE_SIZE=2", "OTEL_EXPORTER_OTLP_TIMEOUT=600000")
	n := l.Leader()
	l.collector.Answer(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or it is not noticed when the other side goes
		<-r.Context().Done()
	})
	for i := 1; metric(t, n, `baton_trace_spans_total{outcome="dropped"}`) == "0"; i++ {
		l.do("HINCRBY", "hits", "7", "1")
		want := fmt.Sprint(i)
		l.Await(soon, "row "+want, func() bool {
			rows := l.db.Rows(t, "SELECT views FROM articles")
			return len(rows) == 1 && fmt.Sprint(rows[0][0]) == want
		})
	}
	if !n.Leading() {
		t.Error("it does not lead any more")
	}
	l.Await(2*soon, "a line in the log", func() bool { return len(n.Lines("cannot deliver all spans to the trace collector")) <= 1 })
	if code := n.Terminate(soon); code != 0 { // the collector hangs for longer
		t.Errorf("exit code %d", code)
	}
	if lines := n.Lines("cannot deliver all spans to the trace collector"); len(lines) != 1 {
		t.Errorf("logged: %v", lines)
	}
}

// Without an endpoint commands get no parent, and what is set for other programs is not read.
func TestWithoutAnEndpointThereAreNoTraces(t *testing.T) {
	t.Parallel()
	l := startTraced(t, 1, "- {name: report, schedule: \"@every 1s\", shell: true, command: \"env | grep -E '^(TRACE|OTEL)'; echo done >> out\", working_dir: "+t.TempDir()+"}\n",
		"OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	n := l.Leader()
	l.Await(soon, "a run", func() bool {
		return metric(t, n, `baton_job_runs_total{job="report",result="succeeded",trigger="schedule"}`) > "0"
	})
	if out := l.Command("job", "logs", "report", "--config", n.ConfigPath()); out.Stdout != "" {
		t.Errorf("the command's environment has\n%s", out.Stdout)
	}
	if code := n.Terminate(soon); code != 0 || len(l.collector.Headers()) != 0 {
		t.Errorf("exit code %d, %d requests", code, len(l.collector.Headers()))
	}
	if strings.Contains(n.Log(), "trace_id") {
		t.Error("the log names traces")
	}
}

func TestAnEnvironmentForAnotherProtocolIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(path, []byte("redis: {url: \"redis://127.0.0.1:1/0\"}\nhttp: {listen: \"off\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := cluster.Command(t, soon, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=" + tracedSecret,
	}, "run", "--config", path)
	if out.Code != 2 || out.Stdout != "" || strings.Contains(out.Stderr, tracedSecret) {
		t.Errorf("%d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	for _, want := range []string{`OTEL_EXPORTER_OTLP_PROTOCOL: "grpc"`, "set the protocol to http/json", "4318", "OTEL_EXPORTER_OTLP_HEADERS: write key=value"} {
		if !strings.Contains(out.Stderr, want) {
			t.Errorf("standard error does not say %q:\n%s", want, out.Stderr)
		}
	}
}

// baton lock is no span of a trace: its command has the parent that it was given itself.
func TestLockPassesTheParentOn(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	l.shell("TRACEPARENT="+parent+" TRACESTATE=a=b baton lock a -- sh -c 'echo $TRACEPARENT $TRACESTATE'").want(0, parent+" a=b\n", "")
	l.lock("a", "--", "sh", "-c", "echo none$TRACEPARENT").want(0, "none\n", "")
}
