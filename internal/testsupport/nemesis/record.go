package nemesis

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Timeline is what happened when, for whoever looks for a cause. Many may write.
type Timeline struct {
	mu    sync.Mutex
	lines []entry
}

type entry struct {
	at   time.Time
	text string
}

// Add notes what happens now.
func (l *Timeline) Add(format string, args ...any) { l.At(time.Now(), format, args...) }

// At notes what happened at that moment.
func (l *Timeline) At(at time.Time, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, entry{at, fmt.Sprintf(format, args...)})
}

// String is the timeline with the times of the nodes' logs, one a line.
func (l *Timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.Clone(l.lines)
	slices.SortStableFunc(lines, func(a, b entry) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, e := range lines {
		fmt.Fprintf(&b, "%s  %s\n", e.at.UTC().Format("15:04:05.000"), e.text)
	}
	return b.String()
}

// Record is a timeline, and what happened that must not. Many may write.
type Record struct {
	Timeline
	guard  sync.Mutex
	wrongs []string
}

// Wrong notes what must not be. The test goes on: the rest may tell why.
func (r *Record) Wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.Add("WRONG: %s", text)
	r.guard.Lock()
	defer r.guard.Unlock()
	r.wrongs = append(r.wrongs, text)
}

// Wrongs is all that was wrong so far.
func (r *Record) Wrongs() []string {
	r.guard.Lock()
	defer r.guard.Unlock()
	return slices.Clone(r.wrongs)
}

// Keep fails the test for what was wrong, and keeps what may tell why; always, if
// $CHAOS_KEEP is set. more is asked for the text of further files, by their names.
func (r *Record) Keep(t testing.TB, name string, seed uint64, more func() map[string]string) {
	t.Helper()
	wrongs := r.Wrongs()
	Fail(t, wrongs)
	if !t.Failed() && os.Getenv("CHAOS_KEEP") == "" {
		return
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("baton-%s-%d-", name, seed)) //nolint:usetesting // it is to stay
	if err != nil {
		t.Error(err)
		return
	}
	files := map[string]string{"timeline.txt": r.String(), "wrong.txt": strings.Join(wrongs, "\n")}
	maps.Copy(files, more())
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Logf("CHAOS_SEED=%d replays these faults; what may tell why is kept in %s", seed, dir)
	if t.Failed() {
		t.Log("\n" + r.String())
	}
}

// Fail fails the test for what was wrong, and tells as much of it as can be read.
func Fail(t testing.TB, wrongs []string) {
	t.Helper()
	const most = 25
	for _, w := range wrongs[:min(most, len(wrongs))] {
		t.Error(w)
	}
	if more := len(wrongs) - most; more > 0 {
		t.Errorf("and %d more", more)
	}
}
