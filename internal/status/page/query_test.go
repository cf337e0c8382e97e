package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/internal/status/statustest"
)

func TestATextCannotPassForWhatThePageCounts(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Events[0].Reason, s.Nodes[0].ID = `x data-tick="near" data-at=1`, ` data-tick=`
	h := newServer(config{Source: statustest.Fixed(s)})
	d := h.page.compose(t.Context(), topic{path: "/", see: true}, s, true)
	body, err := h.page.render("live", d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data-tick=</bdi>`, "silent</span>", "epoch 1753192331043</span>"} {
		if n, left := strings.Count(string(body), want), strings.Count(string(still(body)), want); n == 0 || n != left {
			t.Errorf("%q stands %d times on the page, and %d times in what browsers are told", want, n, left)
		}
	}
	const times = `<time data-tick="near">%s</time><time datetime="x">12:00</time>`
	if text := string(still(fmt.Appendf(nil, times, "1 s ago"))); text != fmt.Sprintf(times, "") {
		t.Error(text)
	}
}

func TestAQueryThatMeansNothingMakesNoOtherPage(t *testing.T) {
	for given, want := range map[string]string{
		"/?jobs=all": "jobs=all", "/?jobs=some&x=1": "", "/?x=%zz": "", "/timeline?x=1": "",
		"/jobs/a?before=1-2&x=3": "before=1-2", "/jobs/a?before=x": "",
		"/dead-letters?job=a&job=b": "job=a", "/jobs/a/runs/b?x=1": "",
	} {
		path, query, _ := strings.Cut(given, "?")
		if got := meant(path, query); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	h := newServer(config{Source: statustest.Fixed(statustest.Sample(time.Now()))})
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	for i := range 3 {
		r, w := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/live?page=%%2F%%3Fx%%3D%d", i), nil), statustest.NewSlowReader(nil)
		go func() { h.ServeHTTP(w, r.WithContext(ctx)); done <- struct{}{} }()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, readers := h.page.hub.Count(); readers == 3 {
			break
		}
	}
	if n, readers := h.page.hub.Count(); n != 1 || readers != 3 {
		t.Errorf("%d pages are rendered for %d readers of the same one", n, readers)
	}
	hangUp()
	for range 3 {
		<-done
	}
	h.page.Watch.End()
}
