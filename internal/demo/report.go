package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is the result of a run.
type Report struct {
	Seed     uint64  `json:"seed"`
	Duration float64 `json:"duration_seconds"` // of the traffic, in seconds
	Written  amount  `json:"written"`          // acknowledged by Redis
	// Flushed contains the sum in the table of counters, and the number of changes of hashes whose row is correct.
	Flushed amount `json:"flushed"`
	// Lost is the number of missing increments, and of rows that are missing, stale or not deleted.
	Lost int64 `json:"lost"`
	// Duplicated is the number of surplus increments, and of rows that were not written.
	Duplicated int64     `json:"duplicated"`
	Terms      int       `json:"terms"`
	Failover   failovers `json:"failover_seconds"`
	Faults     faults    `json:"faults"` // faults of leaders because of --chaos
	// Naive is the result of the naive program for the same increments under the same faults.
	Naive *NaiveReport `json:"naive,omitempty"`
	// NodeExits is the number of nodes that ended without a signal.
	NodeExits int `json:"node_exits"`
	// Findings describes the first losses and duplicates in words.
	Findings []string `json:"findings,omitempty"`
	// Kept is the directory with logs and configuration, if it was not removed.
	Kept string `json:"kept,omitempty"`
}

// NaiveReport contains the results of the naive program: the numbers of its missing and of its surplus increments.
type NaiveReport struct {
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
}

// failovers contains, in seconds, how long it took from the end of a leader until the next term began.
type failovers struct {
	Count int      `json:"count"`
	P50   *float64 `json:"p50"` // null if there was no failover
	Max   *float64 `json:"max"`
}

// Clean reports whether the database contains every write exactly once.
func (r Report) Clean() bool { return r.Lost == 0 && r.Duplicated == 0 }

func summarize(times []time.Duration) failovers {
	f := failovers{Count: len(times)}
	if f.Count > 0 {
		slices.Sort(times)
		p50, most := rounded(times[(f.Count-1)/2]), rounded(times[f.Count-1])
		f.P50, f.Max = &p50, &most
	}
	return f
}

// rounded returns a duration in seconds, rounded to milliseconds.
func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// Print writes the report for people.
func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("")
	p("  written     %11s increments  %11s changes of rows", group(r.Written.Counters), group(r.Written.Hashes))
	p("  flushed     %11s             %11s", group(r.Flushed.Counters), group(r.Flushed.Hashes))
	p("  lost        %11s", group(r.Lost))
	p("  duplicated  %11s", group(r.Duplicated))
	if r.Naive != nil {
		p("  SET NX EX, read, write, delete: the same increments under the same faults")
		p("              %11s lost       %11s duplicated", group(r.Naive.Lost), group(r.Naive.Duplicated))
	}
	p("  terms       %11d", r.Terms)
	if r.Faults.Killed+r.Faults.Frozen > 0 {
		p("  chaos       %11d leaders killed, %d frozen (seed %d)", r.Faults.Killed, r.Faults.Frozen, r.Seed)
	}
	if f := r.Failover; f.Count > 0 {
		p("  failover    %10.3f s p50, %.3f s max, of %d", *f.P50, *f.Max, f.Count)
		p("              from the leader's death or freeze to the next term in Redis,")
		p("              polled every %v; the lease is %v", watchEvery, ttl)
	}
	if r.NodeExits > 0 {
		p("  %d times a node ended by itself; its log says why (--keep)", r.NodeExits)
	}
	p("")
	for _, finding := range r.Findings {
		p("  %s", finding)
	}
	if r.Clean() {
		p("Every value in the database is as it was written: nothing lost, nothing twice.")
	} else {
		p("THE DATABASE DIFFERS FROM WHAT WAS WRITTEN.")
	}
	if r.Kept != "" {
		p("Logs and configuration of the nodes: %s", r.Kept)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// group formats a number with commas between the thousands, such as 1,234,567.
func group(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
