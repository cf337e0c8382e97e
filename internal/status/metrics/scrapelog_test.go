package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestScrapesThatAreGivenUpDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		h := New("v1", []string{"views"}).Handler(zap.New(core))
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for range 20 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "http://localhost:9747/metrics", nil))
			synctest.Wait()
		}
		if got := told(logs); !slices.Equal(got, []int64{1}) {
			t.Errorf("lines tell of %d metrics that were not written", got)
		}
		time.Sleep(time.Minute + time.Second)
		if got := told(logs); len(got) != 1 || got[0] < 20 {
			t.Errorf("a minute later lines tell of %d metrics that were not written", got)
		}
	})
}

// told returns the counts in the log lines since the last call.
func told(logs *observer.ObservedLogs) (all []int64) {
	for _, line := range logs.TakeAll() {
		count, _ := line.ContextMap()["count"].(int64)
		all = append(all, count)
	}
	return all
}
