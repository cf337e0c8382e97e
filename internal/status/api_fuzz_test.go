package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/metrics"
	"baton/internal/status/statustest"
)

// counter is a node that answers every question.
type counter struct{}

func (counter) History(_ context.Context, job, _ string, n int) ([]operate.Entry, error) {
	if job == "none" {
		return nil, operate.ErrNotFound
	}
	return make([]operate.Entry, min(n, 3)), nil
}

func (counter) Printed(_ context.Context, _, run string) (operate.Printed, error) {
	if run == "none" {
		return operate.Printed{}, errors.New("redis is away")
	}
	return operate.Printed{Text: "tik\xfftok", Dropped: 3, Running: run == "now"}, nil
}

func (counter) Letters(_ context.Context, f operate.LetterFilter, n int) ([]operate.Letter, error) {
	if f.Text != "" {
		return []operate.Letter{{ID: "a"}}, errors.New("one database is away")
	}
	return make([]operate.Letter, min(n, 3)), nil
}
func (counter) Recent(context.Context) (map[string][]operate.Brief, error)   { return nil, nil }
func (counter) Samples(context.Context, time.Time) ([]operate.Sample, error) { return nil, nil }
func (counter) Events(_ context.Context, n int) ([]diagnose.Event, error) {
	return make([]diagnose.Event, n), nil
}
func (counter) Next(_ context.Context, job string, from time.Time, n int) (operate.Coming, error) {
	return operate.Coming{Job: job, Next: []operate.ComingSlot{{Slot: from, Start: from.Add(time.Duration(n))}}}, nil
}

func (counter) Explain(_ context.Context, node string) (operate.Explanation, error) {
	if node == "panic" {
		panic("on purpose")
	}
	return operate.Explanation{NodeID: node, Reasons: []operate.Why{{Code: "x"}}}, nil
}

func (counter) Run(_ context.Context, job, run string) (operate.JobRun, error) {
	return operate.JobRun{Job: job, Run: diagnose.Run{ID: run, Error: "x"}}, nil
}

func (counter) Acceptance(_ context.Context, job string) (operate.Acceptance, error) {
	return operate.Acceptance{Job: job, State: operate.RowsWait, Changes: 3}, nil
}

func (counter) LetterKeys(context.Context, operate.LetterFilter, int) ([]operate.LetterKey, error) {
	return []operate.LetterKey{{ID: "a"}}, nil
}

func (counter) DeletedRows(context.Context, operate.RowFilter, int) ([]operate.DeletedRow, error) {
	return []operate.DeletedRow{{ID: 1, Job: "j"}}, nil
}

func (counter) Kept(context.Context, string) (operate.KeptCount, error) {
	return operate.KeptCount{}, nil
}

func (counter) LockEvents(context.Context, int) (map[string][]diagnose.Event, error) { return nil, nil }

func (counter) Reasons(context.Context, operate.LetterFilter) ([]operate.LetterReason, error) {
	return []operate.LetterReason{{}}, nil
}

// apiFailure is the answer of the API to a request that it does not carry out.
type apiFailure struct{ Error, Code string }

// route is a route of the API.
type route struct{ method, path string }

// described returns the routes that the API describes, except for the stream.
func described(t testing.TB) (routes []route) {
	t.Helper()
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(statustest.Get(New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby}),
		"/api/v1/openapi.json").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			if path != "/api/v1/stream" {
				routes = append(routes, route{strings.ToUpper(method), path})
			}
		}
	}
	return routes
}

// tried returns a server for the requests of the tests.
func tried(t testing.TB, g *given) *Server {
	file := t.TempDir() + "/token"
	if err := os.WriteFile(file, []byte(secretToken), 0o600); err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Node: counter{}, TokenFile: file,
		Metrics: metrics.New("v", nil),
		Do:      g.do,
	})
}

// try sends one request, and fails the test if the answer breaks a rule that holds for all answers.
func try(t testing.TB, s *Server, g *given, local net.Addr, method, target, header, value, body string) {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return
	}
	if u.Path == "/api/v1/stream" || strings.HasSuffix(u.Path, "/live") || strings.HasSuffix(u.Path, "/stream") {
		return // this route streams without an end
	}
	r, err := http.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local), method,
		"http://localhost:9747/", strings.NewReader(body))
	if err != nil {
		return
	}
	r.URL, r.RequestURI, r.Host, r.RemoteAddr = u, target, "localhost:9747", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	if header != "" {
		r.Header.Set(header, value)
	}
	let := r.Header.Get("Authorization") == "Bearer "+secretToken
	_, socket := local.(*net.UnixAddr)
	before := g.count()
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	what := func() string {
		return fmt.Sprintf("%s %q %q: %q, body %q: %d %s", method, target, header, value, body, rec.Code, rec.Body)
	}
	if rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
		t.Error(what())
	}
	if g.count() > before && (!let && !socket || method != http.MethodPost) {
		t.Errorf("an order without a token: %s", what())
	}
	if strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") {
		var v any
		if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
			t.Errorf("no JSON: %v: %s", err, what())
		}
	}
	if rec.Code >= 400 && strings.HasPrefix(u.Path, "/api/v1/") && rec.Code != http.StatusServiceUnavailable {
		var e apiFailure
		if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || e.Error == "" || e.Code == "" {
			t.Errorf("no reason: %s", what())
		}
	}
}

func FuzzAPI(f *testing.F) {
	for _, e := range described(f) {
		path := strings.NewReplacer("{job}", "a%2Fb", "{run}", "now", "{node}", "db1", "{id}", "abc").Replace(e.path)
		f.Add(e.method, path, "Authorization", "Bearer "+secretToken, `{"by": "alice", "reason": "x"}`, false)
		f.Add(e.method, path+"?n=-1&from=x", "X-Forwarded-For", "1.2.3.4", "{", true)
	}
	f.Add("GET", "/api/v1/explain/panic", "", "", "", false)
	f.Add("GET", "/api/v1/jobs/../../x//y", "Range", "bytes=0-1", "", false)
	f.Add("POST", "/api/v1/reload", "Cookie", "baton-9747=0", "", true)
	f.Fuzz(func(t *testing.T, method, target, header, value, body string, socket bool) {
		var local net.Addr = loopbackAddr
		if socket {
			local = socketAddr
		}
		g := &given{}
		try(t, tried(t, g), g, // a server that remembers no wrong token
			local, method, target, header, value, body)
	})
}

func TestNothingThatIsSentBreaksTheAPI(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BATON_TEST_SEED"); text != "" {
		_, _ = fmt.Sscan(text, &seed)
	}
	t.Logf("BATON_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 7))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	g := &given{}
	s := tried(t, g)
	paths := []string{"/", "/metrics", "/-/leader", "/jobs/x", "/do", "/sign-in", "/timeline", "/dead-letters", "/nothing"}
	for _, e := range described(t) {
		paths = append(paths, e.path)
	}
	names := []string{"report", "a%2Fb", "..", "%2e%2e", "%00", "%ff", "ü", "a b", "none", "panic", "now",
		strings.Repeat("x", 3000), "%3Cscript%3E", ""}
	queries := []string{"", "", "", "", "", "", "", "", "", "", "", "", "", "?n=5", "?n=0", "?n=99999999999999999999",
		"?from=2026-01-01T00:00:00Z", "?before=1-1", "?before=+", "?since=x", "?n=1&n=2", "?%zz", "?text=a&within=1h",
		"?whole=true", "/", "#x"}
	headers := []string{"", "Authorization", "Authorization", "Authorization", "Authorization", "Authorization",
		"Cookie", "Origin", "Sec-Fetch-Site", "Content-Type", "Content-Encoding", "Transfer-Encoding",
		"X-Forwarded-For", "Range", "If-None-Match", "X-Http-Method-Override", "Connection", "Accept"}
	values := []string{"Bearer " + secretToken, "Bearer " + secretToken, "Bearer " + secretToken, "Bearer " +
		secretToken, "Bearer x", "Bearer", "", "baton-9747=" + strings.Repeat("0", 64), "http://evil.example", "null",
		"cross-site", "text/plain", "gzip", "chunked", "POST", "bytes=0-", "*"}
	bodies := []string{"", "", "", "", "{}", "{}", "{}", "{", "null", "[]", `"x"`, "1", `{"by":"alice","reason":"x"}`,
		`{"wait":"1s"}`, `{"wait":"0s","to":"db1"}`, `{"until":"2099-01-01T00:00:00Z"}`, `{"for":"1h"}`,
		`{"letters":[{"id":"a","job":"b","database":"c"}]}`, `{"letters":null}`, `{"set":{"a":null}}`, `{"force":true}`,
		`{"changes":3,"deletes":-1}`, `{"unknown":1}`,
		strings.Repeat("[", 20000), strings.Repeat(" ", maxBody+1), "\xff\xfe", `{"by":"\ud800"}`}
	for i := range 6000 {
		path := paths[random.IntN(len(paths))]
		for _, part := range []string{"{job}", "{run}", "{node}", "{id}"} {
			path = strings.ReplaceAll(path, part, one(names...))
		}
		local := []net.Addr{loopbackAddr, loopbackAddr, networkAddr, socketAddr}[random.IntN(4)]
		if i%400 == 0 {
			s = tried(t, g) // a server that remembers no wrong token
		}
		try(t, s, g, local, one("GET", "GET", "POST", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH",
			"TRACE", "CONNECT", "get", "X"), path+one(queries...), one(headers...), one(values...), one(bodies...))
	}
	if g.count() < 10 {
		t.Errorf("only %d orders were carried out: this test tries next to nothing", g.count())
	}
}
