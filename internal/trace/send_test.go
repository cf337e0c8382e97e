package trace_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/testsupport/collector"
	"baton/internal/trace"
)

// soon is long, because all tests may run at the same time on two cores.
const soon = time.Minute

// sender is a tracer that runs, with its log.
type sender struct {
	*trace.Tracer
	t    *testing.T
	logs *recorder.ObservedLogs
	stop func() time.Duration // returns the time that stopping took

	mu     sync.Mutex
	counts map[trace.Outcome]int
}

func start(t *testing.T, endpoint string, env ...string) *sender {
	t.Helper()
	set := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "20"}
	for i := 0; i < len(env); i += 2 {
		set[env[i]] = env[i+1]
	}
	settings, problems := trace.FromEnvironment(func(name string) (string, bool) { v, ok := set[name]; return v, ok })
	if settings == nil {
		t.Fatal(problems)
	}
	core, logs := recorder.New(zapcore.DebugLevel)
	s := &sender{t: t, logs: logs, counts: map[trace.Outcome]int{}}
	count := func(o trace.Outcome, n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[o] += n
	}
	s.Tracer = trace.NewTracer(settings, trace.Options{Version: "v1", NodeID: "db1", Log: zap.New(core), Count: count})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	s.stop = func() time.Duration {
		began := time.Now()
		cancel()
		<-over
		return time.Since(began)
	}
	t.Cleanup(func() { s.stop() })
	return s
}

// record records n spans, each in its own trace.
func (s *sender) record(n int) {
	for range n {
		s.Record(trace.Span{Context: trace.New(), Name: "run", Kind: trace.Internal, Start: time.Now(), End: time.Now()})
	}
}

func (s *sender) count(o trace.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[o]
}

func (s *sender) await(what string, reached func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(soon); !reached(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %v in vain for %s: %v", soon, what, s.logs.All())
		}
	}
}

func (s *sender) logged() string { return fmt.Sprint(s.logs.All()) }

func TestACollectorGetsWhatWasRecorded(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		c := collector.Start(t)
		s := start(t, c.URL, "OTEL_EXPORTER_OTLP_COMPRESSION", compression, "OTEL_EXPORTER_OTLP_HEADERS", "api-key=top-secret",
			"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
		run, term := trace.Of("6ba7b810-9dad-41d1-80b4-00c04fd430c8"), trace.Of("11111111-9dad-41d1-80b4-00c04fd430c8")
		began := time.Unix(1_800_000_000, 123_456_789)
		batch := run.Child()
		s.Record(trace.Span{Context: batch, Parent: run.Span, Name: "batch", Kind: trace.Client, Start: began, End: began.Add(time.Second)})
		s.Record(trace.Span{
			Context: run, Name: "run", Kind: trace.Internal, Links: []trace.Context{term}, Error: "no \xff bytes",
			Start: began, End: began.Add(-time.Second), // the clock was changed
			Attributes: []trace.Attribute{{Key: "text", Value: "a"}, {Key: "number", Value: int64(1) << 60}, {Key: "yes", Value: true}},
		})
		s.await("two spans", func() bool { return s.count(trace.Delivered) == 2 })
		spans := c.Spans()
		if len(spans) != 2 {
			t.Fatalf("%d spans", len(spans))
		}
		b, r := spans[0], spans[1]
		if b.TraceID() != r.TraceID() || b.ParentID() != r.ID() || b.Kind != 3 || b.StartTimeUnixNano != 1_800_000_000_123_456_789 ||
			b.EndTimeUnixNano-b.StartTimeUnixNano != 1e9 || b.Failed() || b.Flags != 1 {
			t.Errorf("batch: %+v", b)
		}
		if r.TraceID() != run.TraceID() || r.ParentID() != "" || !r.Failed() || !strings.HasPrefix(r.Status.Message, "no ") ||
			r.EndTimeUnixNano != r.StartTimeUnixNano {
			t.Errorf("run: %+v", r)
		}
		if len(r.Links) != 1 || string(r.Links[0].TraceId) != string(term.Trace[:]) || string(r.Links[0].SpanId) != string(term.Span[:]) {
			t.Errorf("links: %+v", r.Links)
		}
		if got := fmt.Sprint(r.Attributes); got != "map[number:1152921504606846976 text:a yes:true]" {
			t.Error(got)
		}
		const of = "map[deployment.environment.name:test service.instance.id:db1 service.name:baton service.version:v1]"
		if got := fmt.Sprint(r.Resource); got != of {
			t.Error(got)
		}
		if h := c.Headers()[0]; h.Get("api-key") != "top-secret" || h.Get("User-Agent") != "baton/v1" {
			t.Errorf("%v", h)
		}
	}
}

func TestOnlySampledTracesAreSent(t *testing.T) {
	c := collector.Start(t)
	s := start(t, c.URL, "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.5")
	sampled := 0
	for range 200 {
		of := trace.New()
		if s.Sampled(of) {
			sampled++
		}
		s.Record(trace.Span{Context: of, Name: "run", Kind: trace.Internal})
	}
	s.stop()
	if sampled == 0 || sampled == 200 || len(c.Spans()) != sampled {
		t.Errorf("%d spans of %d sampled traces", len(c.Spans()), sampled)
	}
}

// TestACollectorThatHangsHoldsUpNothing checks that a collector that hangs delays no caller, and that only the spans beyond the queue are
// lost.
func TestACollectorThatHangsHoldsUpNothing(t *testing.T) {
	c := collector.Start(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) }) // before the server is closed
	asked := make(chan struct{}, 100)
	c.Answer(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	s := start(t, c.URL, "OTEL_BSP_MAX_QUEUE_SIZE", "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5", "OTEL_EXPORTER_OTLP_TIMEOUT", "180000")
	s.record(5)
	<-asked
	began := time.Now()
	s.record(1000)
	if took := time.Since(began); took > soon {
		t.Errorf("recording took %v", took)
	}
	if got := s.count(trace.Dropped); got != 990 {
		t.Errorf("%d spans were dropped", got)
	}
	if took := s.stop(); took > soon || took < time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := s.count(trace.GivenUp); got != 15 {
		t.Errorf("%d spans were given up", got)
	}
	lines := s.logs.All()
	if len(lines) != 1 || lines[0].Level != zapcore.WarnLevel {
		t.Errorf("logged: %v", lines)
	}
}

func TestACollectorThatComesBackGetsWhatWaited(t *testing.T) {
	c := collector.Start(t)
	var asked sync.Map
	c.Answer(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store("once", true)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := start(t, c.URL)
	s.record(3)
	s.await("an attempt", func() bool { _, ok := asked.Load("once"); return ok })
	s.record(4)
	c.Answer(nil)
	s.await("all spans", func() bool { return len(c.Spans()) == 7 })
	s.await("its count", func() bool { return s.count(trace.Delivered) == 7 })
	if n := s.count(trace.Refused) + s.count(trace.GivenUp) + s.count(trace.Dropped); n != 0 {
		t.Errorf("%d spans were lost", n)
	}
	if got := s.logged(); !strings.Contains(got, "503 Service Unavailable") {
		t.Error(got)
	}
}

// TestACollectorThatRefuses checks that a refusal is final, is counted, is logged at most once per minute, and shows no secret.
func TestACollectorThatRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		refused    int // out of 5 spans
		answer     http.HandlerFunc
	}{
		{"a status", "401 Unauthorized", 5, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no "+r.Header.Get("api-key"), http.StatusUnauthorized)
		}},
		{"a redirection", "307 Temporary Redirect", 5, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		}},
		{"a part", "lost", 2, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`)
		}},
		{"a part, as a number", "lost", 2, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":2}}`)
		}},
		{"more than all", "lost", 5, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"99"}}`)
		}},
		{"nothing", "", 0, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{10, 0}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := collector.Start(t)
			to.Answer(c.answer)
			s := start(t, to.URL, "OTEL_EXPORTER_OTLP_HEADERS", "api-key=top-secret",
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to.URL+"/v1/traces?token=top-secret")
			s.record(5)
			s.await("an answer", func() bool { return s.count(trace.Refused)+s.count(trace.Delivered) == 5 })
			if got := s.count(trace.Refused); got != c.refused {
				t.Errorf("%d were refused, want %d", got, c.refused)
			}
			s.record(5)
			s.stop()
			got := s.logged()
			lines := map[bool]int{false: 0, true: 1}[c.want != ""]
			if s.logs.Len() != lines || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
				t.Errorf("logged: %s", got)
			}
		})
	}
}

func TestACollectorThatIsNotThereIsNamedWithoutSecrets(t *testing.T) {
	s := start(t, "http://user:top-secret@127.0.0.1:1/?token=top-secret")
	s.record(1)
	s.await("a line", func() bool { return s.logs.Len() == 1 })
	got := s.logged()
	if strings.Contains(got, "secret") || !strings.Contains(got, "refused") || !strings.Contains(got, "127.0.0.1:1") {
		t.Error(got)
	}
	if took := s.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
	if got := s.count(trace.GivenUp); got != 1 {
		t.Errorf("%d spans were given up", got)
	}
}
