package page

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

// reader is a browser that keeps a page current in the same way as the page's script.
type reader struct {
	page    []string
	version int64
	fulls   int
	patches int
	beats   int
}

// take reads a stream to its end.
func (b *reader) take(t *testing.T, text string) {
	t.Helper()
	for event := range strings.SplitSeq(text, "\n\n") {
		kind, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		if !ok {
			continue
		}
		var e struct {
			From, To int64
			Full     *string
			Patch    []splice
		}
		if kind != "beat" {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("%s: %v", event, err)
			}
		}
		switch kind {
		case "beat":
			b.beats++
		case "full":
			b.page, b.version, b.fulls = strings.Split(*e.Full, "\n"), e.To, b.fulls+1
		case "patch":
			if e.From != b.version {
				t.Fatalf("a change from version %d, and the reader has %d", e.From, b.version)
			}
			for _, s := range e.Patch {
				b.page = slices.Replace(b.page, s.At, s.At+s.Cut, s.Text...)
			}
			b.version, b.patches = e.To, b.patches+1
		default:
			t.Fatalf("event %q", kind)
		}
	}
}

// looks opens a page until stop is called. stop returns the text that was sent.
func looks(h http.Handler, path string) (w *statustest.SlowReader, stop func() string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	ctx, hangUp := context.WithCancel(r.Context())
	w = statustest.NewSlowReader(nil)
	over := make(chan struct{})
	go func() { h.ServeHTTP(w, r.WithContext(ctx)); close(over) }()
	return w, func() string { hangUp(); <-over; return w.Body.String() }
}

func TestAReaderHasThePageAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newServer(config{Source: func(context.Context) (diagnose.Snapshot, error) {
			s := statustest.Sample(time.Now())
			s.Jobs[0].Backlog = new(time.Since(start).Milliseconds())
			if time.Since(start) > 10*time.Second { // now the page has another number of lines
				s.Nodes = s.Nodes[:1]
			}
			return s, nil
		}})
		w, first := looks(h, "/live?page=/")
		time.Sleep(5*time.Second + time.Millisecond)
		_, second := looks(h, "/live?page=%2F") // opens the page later
		time.Sleep(15 * time.Second)
		synctest.Wait()
		var shown []string
		if current, leave, ok := h.page.hub.Join(topic{path: "/"}); ok {
			e, _, _, _ := current.Latest()
			shown = strings.Split(string(bytes.Join(e.lines, []byte("\n"))), "\n")
			leave()
		}
		early, late := &reader{}, &reader{}
		early.take(t, first())
		late.take(t, second())
		for name, b := range map[string]*reader{"early": early, "late": late} {
			if b.fulls != 1 || b.patches < 12 || !slices.Equal(b.page, shown) {
				t.Errorf("%s: all of the page %d times, %d changes, %d lines; the page has %d", name, b.fulls,
					b.patches, len(b.page), len(shown))
			}
		}
		if early.beats < 20 {
			t.Errorf("%d signs of life in 20 s", early.beats)
		}
		if kind, buffering := w.Header().Get("Content-Type"),
			w.Header().Get("X-Accel-Buffering"); kind != "text/event-stream" || buffering != "no" {
			t.Errorf("%q, %q", kind, buffering)
		}
		h.page.Watch.End()
	})
}

func TestAReaderOfAnotherBuildLoadsThePageAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(config{Source: statustest.Fixed(statustest.Sample(time.Now()))})
		rec := statustest.Get(h, "/live?page=/&build=another")
		if rec.Body.String() != "event: upgraded\ndata: 1\n\n" || rec.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if again := newServer(config{}).page.build; again != h.page.build {
			t.Errorf("the build is %q, and after a restart %q", h.page.build, again)
		}
		_, stop := looks(h, "/live?page=/&build="+url.QueryEscape(h.page.build))
		time.Sleep(time.Second)
		if text := stop(); !strings.Contains(text, "event: full\n") || strings.Contains(text, "upgraded") {
			t.Errorf("%.100s", text)
		}
		for path, want := range map[string]int{"/live?page=/nothing": 404, "/live?page=": 400, "/live?page=jobs": 400,
			"/live?page=%25": 400} {
			if rec := statustest.Get(h, path); rec.Code != want {
				t.Errorf("%s: %d, want %d", path, rec.Code, want)
			}
		}
		h.page.Watch.End()
	})
}

func TestReadersAreNotWithoutEndAndEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(config{Source: statustest.Fixed(statustest.Sample(time.Now()))})
		var stops []func() string
		for range maxLive {
			_, stop := looks(h, "/live?page=/")
			stops = append(stops, stop)
		}
		synctest.Wait()
		rec := statustest.Get(h, "/live?page=/")
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", rec.Code, rec.Body)
		}
		stops[0]()
		_, again := looks(h, "/live?page=/")
		if feeds, _ := h.page.hub.Count(); feeds != 1 {
			t.Errorf("%d pages are kept current", feeds)
		}
		stops[0] = again
		synctest.Wait()
		h.page.Watch.End()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, readers := h.page.hub.Count(); readers != 0 {
			t.Errorf("%d readers are held after the server has ended", readers)
		}
		for _, stop := range stops {
			stop()
		}
		if rec := statustest.Get(h, "/live?page=/"); rec.Code != 503 {
			t.Errorf("after the end: %d", rec.Code)
		}
	})
}
