package daemon

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/operate"
)

// looker returns a node that does not take part in elections and only reads.
func looker(t *testing.T, c config.Config) *node {
	t.Helper()
	n := newNode(c.WithDefaults(), Options{Version: "test", Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }}, nil)
	err := n.open(n.inventory.Config)
	if err == nil {
		err = n.join(t.Context())
	}
	t.Cleanup(n.close)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSamplesGoOnWhenAnotherNodeLeads(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *") // almost never, so that the existing changes wait
	l.do("HSET", "views", "1", "10", "2", "20")
	for n, id := range []string{"a", "b"} {
		l.config.Node.ID = id
		r := l.start()
		look := looker(t, l.config)
		await(t, "a sample of "+id, func() bool {
			samples, err := look.samples(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return len(samples) == n+1 && samples[n].Jobs["views"].Backlog == 2 && time.Since(samples[n].At).Abs() < time.Minute
		})
		samples, err := look.samples(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if later, err := look.samples(t.Context(), samples[n].At); err != nil || len(later) != 0 {
			t.Errorf("later than the last: %+v, %v", later, err)
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	}
}

func TestTheLatestRunsOfAJobAreKnownToEveryNode(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@every 1s")
	l.do("HSET", "views", "1", "10", "2", "20")
	l.start()
	look := looker(t, l.config)
	await(t, "a run", func() bool {
		all, err := look.recent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		runs := all["views"]
		return len(all) == 1 && slices.ContainsFunc(runs, func(r operate.Brief) bool { // a slot may have been skipped since
			return r.State == "succeeded" && r.RunID != "" && !r.Started.IsZero()
		})
	})
}
