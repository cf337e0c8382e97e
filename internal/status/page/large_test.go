package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/internal/status/statustest"
)

// atMost is how large a document may be.
const atMost = 300_000

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
		} else {
			t.Logf("%s: %d bytes", path, size)
		}
	}
	body := statustest.Get(h, "/").Body.String()
	if n := strings.Count(body, `<svg class="spark"`); n != 200 {
		t.Errorf("%d jobs with a plot, want all 200", n)
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
