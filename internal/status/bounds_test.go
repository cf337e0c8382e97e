package status

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
)

func TestWhateverStandsInRedisThePageAndTheAPIAnswerAndStaySmall(t *testing.T) {
	now := time.Now()
	far := time.UnixMilli(math.MaxInt64)
	d := &statustest.FakeNode{
		Measured: []operate.Sample{{At: far}, {At: now.Add(-time.Minute),
			Jobs: map[string]operate.Level{"page-views": {LagSeconds: math.NaN()}}}, {At: now,
			Jobs: map[string]operate.Level{"page-views": {LagSeconds: 9e18, Backlog: math.MaxInt64}}}},
		Entries: []operate.Entry{{ID: "1-0", At: far, Run: statustest.Absurd(now).Jobs[0].Running}, {ID: "2-0",
			At: far, Missed: &operate.Missed{Reason: strings.Repeat("x", 5<<20), Count: math.MinInt64, First: far, Last: far}}},
	}
	h := New(Config{Source: func(context.Context) (diagnose.Snapshot, error) { return statustest.Absurd(now), nil },
		Health: standby, Node: d})
	for _, path := range []string{
		"/", "/jobs/page-views", "/timeline", "/jobs/page-views/runs/x", "/api/v1/status", "/api/v1/jobs",
		"/api/v1/leader", "/api/v1/nodes",
		"/api/v1/jobs/page-views/history", "/api/v1/samples", "/metrics",
	} {
		rec := statustest.Get(h, path)
		const most = 2 << 20
		if rec.Code != http.StatusOK && rec.Code != http.StatusNotFound || rec.Body.Len() > most {
			t.Errorf("%s: %d, %d bytes: %.200s", path, rec.Code, rec.Body.Len(), rec.Body)
		}
	}
}

func TestWhatIsRightIsNotTouchedByTheBounds(t *testing.T) {
	s, _ := statustest.Large(time.Now(), 2000, 50, 0)
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
	s, _ := statustest.Large(time.Now(), 200, 50, 0)
	for b.Loop() {
		operate.Bounded(s)
	}
}
