package crash_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ttl is the lease of every leader unless its test says otherwise.
const ttl = 10 * time.Second

// diff returns a short text with the differences between two tables.
func diff(want, got map[string]string) string {
	const most = 1500
	text := cmp.Diff(want, got)
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// waiting runs cells that mostly wait for the timeout of a server. It runs more cells at the same time than there are processors for
// parallel tests.
type waiting struct {
	cells sync.WaitGroup
	slots chan struct{}
}

func (w *waiting) run(t *testing.T, name string, cell func(*testing.T)) {
	if w.slots == nil {
		w.slots = make(chan struct{}, 6)
	}
	w.slots <- struct{}{}
	w.cells.Go(func() {
		defer func() { <-w.slots }()
		t.Run(name, cell)
	})
}

func (w *waiting) wait() { w.cells.Wait() }
