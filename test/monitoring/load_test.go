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
	"testing"
	"time"

	"baton/internal/testsupport"
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
	c.Election.TTL = 30 * time.Second // what holds up a renewal shows in the low of the lease
	address := start(t, c)
	stop := writes(t, server.Conn(), names)
	defer stop()
	rows := `baton_flush_batch_seconds_count{job="` + names[jobs-1] + `"}`
	testsupport.Await(t, "all jobs to flush", func() bool {
		_, s := scrape(t, address)
		return s[rows] != "" && s[rows] != "0"
	})
	var calm time.Duration // what the machine takes for one scrape, which nothing disturbs but the flushes
	for range rounds {
		began := time.Now()
		scrape(t, address)
		calm = max(calm, time.Since(began))
	}
	_, s := scrape(t, address)
	undisturbed := number(s[leaseLow])
	var all sync.WaitGroup
	var longest [scrapers]time.Duration
	for n := range scrapers {
		all.Go(func() {
			before := map[string]string{}
			for range rounds {
				began := time.Now()
				text, now, err := scraped(address)
				if err != nil {
					t.Error(err)
					return
				}
				longest[n] = max(longest[n], time.Since(began))
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
	t.Logf("%d scrapes of %d series, %d bytes, at most %v each, and %v of one alone", scrapers*rounds, len(s), len(text), slices.Max(longest[:]).Round(time.Millisecond), calm.Round(time.Millisecond))
	// A renewal is due every two seconds, and may come as late as the machine answers late.
	least := undisturbed - 4 - 5*scrapers*calm.Seconds()
	if low := number(s[leaseLow]); low <= 0 || low < least {
		t.Errorf("of the lease of 30 s at times only %.1f s were left, and %.1f s before the scrapes; want %.1f s", low, undisturbed, least)
	}
	// With nothing going on, runs and their durations agree.
	testsupport.Await(t, "runs and their durations to agree", func() bool {
		_, s := scrape(t, address)
		return slices.IndexFunc(names, func(name string) bool {
			return sum(s, `baton_job_runs_total{job="`+name+`"`) != sum(s, `baton_job_duration_seconds_count{job="`+name+`"`)
		}) < 0
	})
}

const leaseLow = `baton_lease_remaining_low_seconds{lock="baton"}`

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
	return sync.OnceFunc(func() { close(over); <-ended })
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
