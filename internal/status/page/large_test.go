package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/internal/status/statustest"
)

// atMost is the maximum size of a document, and atMostSent is the maximum size of the compressed document, in bytes.
const atMost, atMostSent = 400_000, 60_000

func largePages(tb testing.TB) (*server, []string) {
	tb.Helper()
	s, d := statustest.Large(time.Now(), 200, 50, 10_000)
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	return h, []string{"/", "/timeline", "/jobs/" + s.Jobs[0].Name, "/dead-letters"}
}

func TestPagesOfALargeInstallationAreSmall(t *testing.T) {
	h, paths := largePages(t)
	for _, path := range paths {
		rec := statustest.Get(h, path)
		if size := rec.Body.Len(); rec.Code != http.StatusOK || size > atMost {
			t.Errorf("%s: %d, %d bytes, want at most %d", path, rec.Code, size, atMost)
		}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		sent := httptest.NewRecorder()
		h.ServeHTTP(sent, r)
		coding := sent.Header().Get("Content-Encoding")
		if size := sent.Body.Len(); coding != "gzip" || size > atMostSent {
			t.Errorf("%s: %d bytes are sent, %q, want at most %d, compressed", path, size, coding, atMostSent)
		}
		t.Logf("%s: %d bytes, %d sent", path, rec.Body.Len(), sent.Body.Len())
	}
	body := statustest.Get(h, "/").Body.String()
	if n, strips := strings.Count(body, `<svg class="spark"`), strings.Count(body, `<svg class="strip"`); n != 180 || strips != 200 {
		t.Errorf("%d jobs with a plot and %d with their last runs, want the 180 flushes and all 200", n, strips)
	}
	if body := statustest.Get(h, paths[2]).Body.String(); !strings.Contains(body, "Lag</b>") || !strings.Contains(body,
		`aria-label="History"`) {
		t.Error("the page of a job lacks its plot, or the way to older history")
	}
}

func BenchmarkLargePages(b *testing.B) {
	h, paths := largePages(b)
	for _, path := range paths {
		statustest.Get(h, path)
		b.Run(strings.Trim(path, "/"), func(b *testing.B) {
			for b.Loop() {
				statustest.Get(h, path)
			}
		})
	}
}
