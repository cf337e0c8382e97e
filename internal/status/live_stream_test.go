package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/operate"
)

// reader is a browser that keeps a page current: it does what the page's script does.
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

// looks has somebody look at a page until stop is called, which returns what was sent.
func looks(h http.Handler, path string) (w *slowReader, stop func() string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	ctx, hangUp := context.WithCancel(r.Context())
	w = &slowReader{ResponseRecorder: httptest.NewRecorder()}
	over := make(chan struct{})
	go func() { h.ServeHTTP(w, r.WithContext(ctx)); close(over) }()
	return w, func() string { hangUp(); <-over; return w.Body.String() }
}

func TestAReaderHasThePageAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := New(Config{Health: standby, Source: func(context.Context) (Snapshot, error) {
			s := sample(time.Now())
			s.Jobs[0].Backlog = new(time.Since(start).Milliseconds())
			if time.Since(start) > 10*time.Second { // another number of lines
				s.Nodes = s.Nodes[:1]
			}
			return s, nil
		}})
		w, first := looks(h, "/live?page=/")
		time.Sleep(5*time.Second + time.Millisecond)
		_, second := looks(h, "/live?page=%2F") // comes later
		time.Sleep(15 * time.Second)
		synctest.Wait()
		var shown []string
		for _, sh := range h.page.hub.shows {
			shown = strings.Split(string(bytes.Join(sh.lines, []byte("\n"))), "\n")
		}
		early, late := &reader{}, &reader{}
		early.take(t, first())
		late.take(t, second())
		for name, b := range map[string]*reader{"early": early, "late": late} {
			if b.fulls != 1 || b.patches < 12 || !slices.Equal(b.page, shown) {
				t.Errorf("%s: all of the page %d times, %d changes, %d lines; the page has %d", name, b.fulls, b.patches, len(b.page), len(shown))
			}
		}
		if early.beats < 20 {
			t.Errorf("%d signs of life in 20 s", early.beats)
		}
		if kind, buffering := w.Header().Get("Content-Type"), w.Header().Get("X-Accel-Buffering"); kind != "text/event-stream" || buffering != "no" {
			t.Errorf("%q, %q", kind, buffering)
		}
		h.watch.end()
	})
}

func TestAReaderOfAnotherBuildLoadsThePageAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Health: standby, Source: fixed(sample(time.Now()))})
		rec := get(h, "/live?page=/&build=another")
		if rec.Body.String() != "event: upgraded\ndata: 1\n\n" || rec.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if again := newPage().build; again != h.page.build {
			t.Errorf("the build is %q, and after a restart %q", h.page.build, again)
		}
		_, stop := looks(h, "/live?page=/&build="+url.QueryEscape(h.page.build))
		time.Sleep(time.Second)
		if text := stop(); !strings.Contains(text, "event: full\n") || strings.Contains(text, "upgraded") {
			t.Errorf("%.100s", text)
		}
		for path, want := range map[string]int{"/live?page=/nothing": 404, "/live?page=": 400, "/live?page=jobs": 400, "/live?page=%25": 400} {
			if rec := get(h, path); rec.Code != want {
				t.Errorf("%s: %d, want %d", path, rec.Code, want)
			}
		}
		h.watch.end()
	})
}

func TestReadersAreNotWithoutEndAndEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Health: standby, Source: fixed(sample(time.Now()))})
		var stops []func() string
		for range maxLive {
			_, stop := looks(h, "/live?page=/")
			stops = append(stops, stop)
		}
		synctest.Wait()
		rec := get(h, "/live?page=/")
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", rec.Code, rec.Body)
		}
		stops[0]()
		if _, again := looks(h, "/live?page=/"); len(h.page.hub.shows) != 1 {
			t.Errorf("%d pages are kept current", len(h.page.hub.shows))
		} else {
			stops[0] = again
		}
		synctest.Wait()
		h.watch.end()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if h.page.hub.readers != 0 {
			t.Errorf("%d readers are held after the server has ended", h.page.hub.readers)
		}
		for _, stop := range stops {
			stop()
		}
		if rec := get(h, "/live?page=/"); rec.Code != 503 {
			t.Errorf("after the end: %d", rec.Code)
		}
	})
}

// bySocketOf is the context of whoever may give orders.
func bySocketOf(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{how: bySocket})
}

func TestAnOrderIsTheLastDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := recorder.New(zapcore.InfoLevel)
		release := make(chan struct{})
		var cut error
		s := New(Config{Source: fixed(sample(time.Now())), Health: standby, Logger: zap.New(core), Do: func(ctx context.Context, o operate.Order) (operate.Outcome, error) {
			switch o.Job {
			case "panics":
				panic("planted")
			case "hangs":
				select {
				case <-release:
				case <-ctx.Done():
					cut = context.Cause(ctx)
				}
			}
			return operate.Outcome{Text: "done"}, nil
		}})
		if _, err := s.cfg.Do(t.Context(), operate.Order{Kind: operate.KindRun}); !errors.Is(err, errSignIn) {
			t.Errorf("from nobody: %v", err)
		}
		for range maxOrders + 1 {
			if _, err := s.cfg.Do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun, Job: "panics"}); err == nil || !strings.Contains(err.Error(), "planted") {
				t.Fatalf("an order that panics: %v", err)
			}
		}
		if n := logs.FilterMessage("an order panicked").Len(); n != maxOrders+1 {
			t.Errorf("told %d times", n)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		for range maxOrders {
			go func() { _, _ = s.cfg.Do(bySocketOf(ctx), operate.Order{Kind: operate.KindRun, Job: "hangs"}) }()
		}
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if _, err := s.cfg.Do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun}); !errors.Is(err, errBusy) {
			t.Errorf("whoever hung up has freed a place, or there are too many: %v", err)
		}
		close(release)
		synctest.Wait()
		if _, err := s.cfg.Do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun}); err != nil || cut != nil {
			t.Errorf("%v; the order of who hung up was cut short: %v", err, cut)
		}
		release = nil
		go func() { _, _ = s.cfg.Do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun, Job: "hangs"}) }()
		synctest.Wait()
		s.watch.end()
		synctest.Wait()
		if cut == nil {
			t.Error("an order holds up the end of the daemon")
		}
	})
}
