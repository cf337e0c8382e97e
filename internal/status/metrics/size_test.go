package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"

	"baton/internal/status/statustest"
)

// metricsOf returns the metrics of a node with the given number of jobs, all of which are flushes.
func metricsOf(jobs int) *Metrics {
	names := make([]string, jobs)
	for n := range names {
		names[n] = fmt.Sprintf("sync-the-table-%04d", n)
	}
	m := New("v", names)
	m.AddFlushes(names...)
	m.Election("baton")
	return m
}

// TestSeriesOfAJobAreFew limits the number of series, because each series needs memory on every node and in the metrics server.
func TestSeriesOfAJobAreFew(t *testing.T) {
	for _, c := range []struct{ jobs, atMost int }{{100, 95}, {coarseFrom, 61}} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := metricsOf(c.jobs)
		runtime.GC()
		runtime.ReadMemStats(&after)
		commands := New("v", nil)
		commands.AddJobs("one")
		body := statustest.Get(m.Handler(zap.NewNop()), "/metrics").Body.String()
		series := strings.Count(body, `job="`)
		t.Logf("%d flushes: %d series, %.0f each, %.1f MB of text, %.1f MB of memory", c.jobs, series, float64(series)/float64(c.jobs),
			float64(len(body))/(1<<20), float64(after.HeapAlloc-before.HeapAlloc)/(1<<20))
		if series > c.jobs*c.atMost {
			t.Errorf("%d jobs have %d series", c.jobs, series)
		}
		flush := strings.Count(body, `job="sync-the-table-0007"`)
		only := 0
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "baton_flush_") && strings.Contains(line, `job="sync-the-table-0007"`) {
				only++
			}
		}
		t.Logf("of a flush: %d series, of a command: %d", flush, flush-only)
	}
}

func BenchmarkScrape(b *testing.B) {
	for _, jobs := range []int{20, 200, 2000} {
		b.Run(fmt.Sprintf("%d_jobs", jobs), func(b *testing.B) {
			s := metricsOf(jobs).Handler(zap.NewNop())
			var size int
			for b.Loop() {
				rec := httptest.NewRecorder()
				s.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				n, _ := io.Copy(io.Discard, rec.Body)
				size = int(n)
			}
			b.ReportMetric(float64(size), "bytes/scrape")
		})
	}
}
