package status

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/internal/operate"
)

// absurd is a state as somebody with access to Redis may have made it.
func absurd(now time.Time) Snapshot {
	far, huge, lag := time.UnixMilli(math.MaxInt64), strings.Repeat("ü", 5<<20), math.Inf(1)
	s := sample(now)
	s.Leader = &Leader{NodeID: huge, Owner: huge, Since: far, TTLMS: math.MaxInt64, LeaseLeftMS: math.MaxInt64, Epoch: math.MaxInt64}
	s.Paused = &Pause{Since: far, Reason: huge}
	run := Run{ID: huge, State: huge, Trigger: huge, By: huge, Started: far, Slot: time.UnixMilli(math.MinInt64), DurationMS: math.MinInt64, Rows: math.MinInt64, Dead: math.MaxInt64, Output: huge, Error: huge, NodeID: huge}
	for range 2000 {
		s.Nodes = append(s.Nodes, Node{ID: "x", LastSeenMSAgo: math.MaxInt64, ClockOffsetMS: math.MinInt64})
		s.Jobs[1].Open = append(s.Jobs[1].Open, Run{ID: "x", Started: far})
	}
	s.Nodes[0] = Node{ID: huge, State: huge, Version: huge, Aside: huge, ConfigHash: huge, Address: huge, Twin: huge, LastSeenMSAgo: math.MinInt64}
	s.Jobs[0].Running, s.Jobs[0].LastRun, s.Jobs[0].LagSeconds, s.Jobs[0].Backlog = &run, &run, &lag, new(int64(math.MinInt64))
	s.Jobs[0].Paused, s.Jobs[0].Retry = &Pause{Since: far, Until: far, Reason: huge}, &Retry{Slot: far, At: far, Attempt: math.MinInt64}
	s.Jobs[0].ConsecutiveFailures, s.Jobs[0].NextRun = math.MaxInt64, far
	s.Events[0] = Event{At: far, Event: huge, NodeID: huge, Reason: huge}
	s.Events[1].At = time.UnixMilli(math.MinInt64)
	return s
}

func TestWhateverStandsInRedisThePageAndTheAPIAnswerAndStaySmall(t *testing.T) {
	now := time.Now()
	far := time.UnixMilli(math.MaxInt64)
	d := &shelf{
		samples: []operate.Sample{{At: far}, {At: now.Add(-time.Minute), Jobs: map[string]operate.Level{"page-views": {LagSeconds: math.NaN()}}}, {At: now, Jobs: map[string]operate.Level{"page-views": {LagSeconds: 9e18, Backlog: math.MaxInt64}}}},
		entries: []operate.Entry{{ID: "1-0", At: far, Run: absurd(now).Jobs[0].Running}, {ID: "2-0", At: far, Missed: &operate.Missed{Reason: strings.Repeat("x", 5<<20), Count: math.MinInt64, First: far, Last: far}}},
	}
	h := New(Config{Source: func(context.Context) (Snapshot, error) { return absurd(now), nil }, Health: standby, Node: d})
	for _, path := range []string{
		"/", "/jobs/page-views", "/timeline", "/jobs/page-views/runs/x", "/api/v1/status", "/api/v1/jobs", "/api/v1/leader", "/api/v1/nodes",
		"/api/v1/jobs/page-views/history", "/api/v1/samples", "/metrics",
	} {
		rec := get(h, path)
		const most = 2 << 20
		if rec.Code != http.StatusOK && rec.Code != http.StatusNotFound || rec.Body.Len() > most {
			t.Errorf("%s: %d, %d bytes: %.200s", path, rec.Code, rec.Body.Len(), rec.Body)
		}
	}
	u := newUpdate(h.watch.current, true, nil)
	if !json.Valid(u.full) || !json.Valid(u.public) {
		t.Error("a stream would tell what is no JSON")
	}
}

func TestWhatIsRightIsNotTouchedByTheBounds(t *testing.T) {
	s, _ := large(time.Now(), 2000, 50, 0)
	before, _ := json.Marshal(s)
	after, _ := json.Marshal(operate.Bounded(s))
	if string(before) != string(after) || len(operate.Bounded(s).Jobs) != 2000 {
		t.Error("a state that is right has changed")
	}
	if n := testing.AllocsPerRun(10, func() { operate.Bounded(s) }); n > 100 {
		t.Errorf("it takes %v allocations", n)
	}
}

func BenchmarkBounds(b *testing.B) {
	s, _ := large(time.Now(), 200, 50, 0)
	for b.Loop() {
		operate.Bounded(s)
	}
}

func TestATextCannotPassForWhatThePageCounts(t *testing.T) {
	s := sample(time.Now())
	s.Events[0].Reason, s.Nodes[0].ID = `x data-tick="near" data-at=1`, ` data-tick=`
	h := New(Config{Source: fixed(s), Health: standby})
	d := h.compose(t.Context(), topic{path: "/", see: true}, s, true)
	body, err := h.page.render("live", d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data-tick=</bdi>`, "silent</span>", "epoch 1753192331043</span>"} {
		if n, left := strings.Count(string(body), want), strings.Count(string(still(body)), want); n == 0 || n != left {
			t.Errorf("%q stands %d times on the page, and %d times in what browsers are told", want, n, left)
		}
	}
	if text := string(still([]byte(`<time data-tick="near">1 s ago</time><time datetime="x">12:00</time>`))); text != `<time data-tick="near"></time><time datetime="x">12:00</time>` {
		t.Error(text)
	}
}

func TestAQueryThatMeansNothingMakesNoOtherPage(t *testing.T) {
	for given, want := range map[string]string{
		"/?jobs=all": "jobs=all", "/?jobs=some&x=1": "", "/?x=%zz": "", "/timeline?x=1": "", "/jobs/a?before=1-2&x=3": "before=1-2", "/jobs/a?before=x": "",
		"/dead-letters?job=a&job=b": "job=a", "/jobs/a/runs/b?x=1": "",
	} {
		path, query, _ := strings.Cut(given, "?")
		if got := meant(path, query); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	h := New(Config{Source: fixed(sample(time.Now())), Health: standby})
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	for i := range 3 {
		r, w := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/live?page=%%2F%%3Fx%%3D%d", i), nil), &slowReader{ResponseRecorder: httptest.NewRecorder()}
		go func() { h.ServeHTTP(w, r.WithContext(ctx)); done <- struct{}{} }()
	}
	shows := func() (n, readers int) {
		h.page.hub.mu.Lock()
		defer h.page.hub.mu.Unlock()
		return len(h.page.hub.shows), h.page.hub.readers
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, readers := shows(); readers == 3 {
			break
		}
	}
	if n, readers := shows(); n != 1 || readers != 3 {
		t.Errorf("%d pages are rendered for %d readers of the same one", n, readers)
	}
	hangUp()
	for range 3 {
		<-done
	}
	h.watch.end()
}
