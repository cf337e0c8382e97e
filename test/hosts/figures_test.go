package hosts

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// figures are what the tests have measured. They are a variable of the package because
// they are printed after the last test.
var figures struct {
	mu    sync.Mutex
	lines []string
}

// measure are the times of one thing, held to a limit.
type measure struct {
	what  string
	limit time.Duration
	all   []time.Duration
}

func (m *measure) add(d time.Duration) { m.all = append(m.all, d) }

// report notes the figures, and fails the test for each time that is not below the limit.
func (m *measure) report(t *testing.T) {
	t.Helper()
	slices.Sort(m.all)
	most := m.all[len(m.all)-1]
	note("%-66s %3d  p50 %8v  max %8v  limit %6v", m.what, len(m.all), round(m.all[(len(m.all)-1)/2]), round(most), m.limit)
	if most >= m.limit {
		t.Errorf("%s: %v, want less than %v; all: %v", m.what, round(most), m.limit, m.all)
	}
}

func note(format string, args ...any) {
	figures.mu.Lock()
	defer figures.mu.Unlock()
	figures.lines = append(figures.lines, fmt.Sprintf(format, args...))
}

func printFigures() {
	if len(figures.lines) == 0 {
		return
	}
	fmt.Println("\nmeasured with a real systemd:")
	for _, line := range figures.lines {
		fmt.Println("  " + line)
	}
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
