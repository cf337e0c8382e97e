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

// Timeline records events with their times, for a reader who looks for the cause of a failure. Several goroutines may write to it.
type Timeline struct {
	mu    sync.Mutex
	lines []entry
}

type entry struct {
	at   time.Time
	text string
}

// Add records an event that happens now.
func (l *Timeline) Add(format string, args ...any) { l.At(time.Now(), format, args...) }

// At records an event that happened at the given time.
func (l *Timeline) At(at time.Time, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, entry{at, fmt.Sprintf(format, args...)})
}

// String returns the timeline with one event per line. The times have the same format as in the nodes' logs.
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

// Record contains a timeline of events, and a list of the forbidden events that did happen. Several goroutines may write to a Record.
type Record struct {
	Timeline
	guard  sync.Mutex
	wrongs []string
}

// Wrong records an event that must not happen. The test continues, because later events may show the cause.
func (r *Record) Wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.Add("WRONG: %s", text)
	r.guard.Lock()
	defer r.guard.Unlock()
	r.wrongs = append(r.wrongs, text)
}

// Wrongs returns the texts of all calls of Wrong so far.
func (r *Record) Wrongs() []string {
	r.guard.Lock()
	defer r.guard.Unlock()
	return slices.Clone(r.wrongs)
}

// Keep fails the test if Wrong has recorded an event. In that case, or if $CHAOS_KEEP is set, it saves files that may show the cause. The
// function more returns further files to save, as a map from file names to texts.
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
	t.Logf("CHAOS_SEED=%d replays these faults; the files in %s may show the cause", seed, dir)
	if t.Failed() {
		t.Log("\n" + r.String())
	}
}

// Fail fails the test if the list wrongs is not empty, and shows at most 25 of its errors.
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
