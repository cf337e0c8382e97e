package monitoring_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// manyJobs is how many jobs the busy node has; with the race detector each costs ten times
// as much. BATON_SCRAPE_JOBS=200 asks for more.
func manyJobs() int {
	if n, err := strconv.Atoi(os.Getenv("BATON_SCRAPE_JOBS")); err == nil {
		return n
	}
	return 40
}

// A node that flushes many jobs as fast as it can is asked for its metrics by ten at once.
// Each gets them whole, what belongs together agrees, and the node leads on.
func TestScrapesOfABusyNodeAreWholeAndDoNotDisturbIt(t *testing.T) {
	const scrapers, rounds = 10, 3
	jobs := manyJobs()
	names := make([]string, jobs)
	for n := range names {
		names[n] = fmt.Sprintf("sync-%03d", n)
	}
	c, server := flushing(t, "@every 1s", names...)
	address := start(t, c)
	stop := writes(t, server.Conn(), names)
	rows := `baton_flush_batch_seconds_count{job="` + names[jobs-1] + `"}`
	await(t, "all jobs to flush", func() bool {
		_, s := scrape(t, address)
		return s[rows] != "" && s[rows] != "0"
	})
	var all sync.WaitGroup
	var longest atomic.Int64
	for range scrapers {
		all.Go(func() {
			before := map[string]string{}
			for range rounds {
				began := time.Now()
				text, now := scrape(t, address)
				longest.Store(max(longest.Load(), int64(time.Since(began))))
				whole(t, text, jobs)
				agrees(t, before, now)
				before = now
			}
		})
	}
	all.Wait()
	stop()
	text, s := scrape(t, address)
	if won := s[`baton_leader_transitions_total{lock="baton",reason="won"}`]; won != "1" || s[`baton_leader{lock="baton"}`] != "1" {
		t.Errorf("won %s times, leads: %s", won, s[`baton_leader{lock="baton"}`])
	}
	t.Logf("%d scrapes of %d series, %d bytes, at most %v each", scrapers*rounds, len(s), len(text), time.Duration(longest.Load()).Round(time.Millisecond))
	if low, err := strconv.ParseFloat(s[`baton_lease_remaining_low_seconds{lock="baton"}`], 64); err != nil || low < 3 {
		t.Errorf("of the lease of 10 s at times only %.1f s were left, %v", low, err)
	}
	// With nothing going on, runs and their durations agree.
	await(t, "runs and their durations to agree", func() bool {
		_, s := scrape(t, address)
		return slices.IndexFunc(names, func(name string) bool {
			return sum(s, `baton_job_runs_total{job="`+name+`"`) != sum(s, `baton_job_duration_seconds_count{job="`+name+`"`)
		}) < 0
	})
}

// writes counts up in Redis for all jobs, until stop is called.
func writes(t *testing.T, conn interface {
	Send(string, ...any) error
	Do(string, ...any) (any, error)
}, names []string) (stop func()) {
	t.Helper()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
			for _, name := range names {
				_ = conn.Send("HINCRBY", name, n%50, 1) // Do tells
			}
			if _, err := conn.Do(""); err != nil {
				t.Errorf("write: %v", err)
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

var sampleLine = regexp.MustCompile(`^[a-z_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? [-+0-9.eInfNa]+\n$`)

// whole wants a scrape with every job that follows the format.
func whole(t *testing.T, text []byte, jobs int) {
	t.Helper()
	for line := range bytes.Lines(text) {
		if line[0] != '#' && !sampleLine.Match(line) {
			t.Errorf("a scrape has %q", line)
		}
	}
	if n := bytes.Count(text, []byte("\nbaton_flush_backlog{")); n != jobs || !bytes.HasSuffix(text, []byte("\n")) {
		t.Errorf("a scrape has %d of %d jobs", n, jobs)
	}
}

// agrees wants counters that only rise, and histograms whose last bucket has all.
func agrees(t *testing.T, before, now map[string]string) {
	t.Helper()
	for name, value := range now {
		if i := strings.Index(name, `_bucket{`); i >= 0 && strings.Contains(name, `le="+Inf"`) {
			labels := strings.NewReplacer(`,le="+Inf"`, "", `le="+Inf"`, "").Replace(name[i+len(`_bucket`):])
			if count := now[name[:i]+"_count"+strings.TrimSuffix(labels, "{}")]; count != value {
				t.Errorf("%s is %s, and the count %s", name, value, count)
			}
		}
		if strings.Contains(name, "_total{") && before[name] != "" && number(before[name]) > number(value) {
			t.Errorf("%s fell from %s to %s", name, before[name], value)
		}
	}
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return -1
	}
	return v
}

// sum is that of all series that begin so.
func sum(series map[string]string, prefix string) (total float64) {
	for name, value := range series {
		if strings.HasPrefix(name, prefix) {
			total += number(value)
		}
	}
	return total
}
