package hosts

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// heldUp is for how long a machine may stand still while a single time is taken.
const heldUp = 3 * time.Second

// report notes the figures, and fails the test where the median is not below the limit. In a single
// time the machine may have stood still: it is below so much more. Where more wants to run than
// there are cores the limit is a multiple, and few times say little.
func (m *measure) report(t *testing.T) {
	t.Helper()
	const leeway = 3
	slices.Sort(m.all)
	median, most := m.all[(len(m.all)-1)/2], m.all[len(m.all)-1]
	several, limit, busy := 2, m.limit, ""
	if load := load(t); load > tooMuch() {
		several, busy = 4, fmt.Sprintf("  (busy machine, load %.1f)", load)
		limit = time.Duration(float64(limit) * min(load/tooMuch(), leeway))
	}
	note("%-66s %3d  p50 %8v  max %8v  limit %6v%s", m.what, len(m.all), round(median), round(most), m.limit, busy)
	if len(m.all) >= several && median >= limit || most >= leeway*limit+heldUp {
		t.Errorf("%s: median %v, want less than %v, and at most %v%s; all: %v", m.what, round(median), limit, round(most), busy, m.all)
	}
}

// tooMuch is the load from which on a machine is too busy for single times to be judged.
func tooMuch() float64 { return 2 * float64(runtime.NumCPU()) }

// load is how many processes run or want to, on average over the last minute.
func load(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
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
