package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/text"
)

const (
	// recentRunsStale is the maximum age of the runs in memory. Runs that were read earlier are read again when they are needed. If there
	// are 200 jobs, an open status page costs Redis 8 scripts during this time.
	recentRunsStale = 10 * time.Second
	// recentRunsReread is the interval between two readings of all runs from the beginning. It is needed because Redis may have lost
	// entries, or entries that were already read may have been corrected.
	recentRunsReread = 5 * time.Minute
)

// RecentRuns is a node's memory of the latest runs of the jobs under one lock. A request for the runs fills this memory, and later requests
// use it.
type RecentRuns struct {
	lockKey string
	ledger  *redisledger.Ledger
	turn    chan struct{} // held while the fields below are read or written

	jobs map[string]recentJob
	read time.Time // when Redis last answered
	all  time.Time // when all runs were last read from the beginning
}

// recentJob is the memory of one job.
type recentJob struct {
	entries []redisledger.HistoryEntry // the newest first
	idle    *redisledger.HistoryEntry
}

// NewRecentRuns returns an empty memory of the lock's jobs.
func NewRecentRuns(lockKey string, ledger *redisledger.Ledger) *RecentRuns {
	return &RecentRuns{lockKey: lockKey, ledger: ledger, turn: make(chan struct{}, 1)}
}

// Add adds the latest runs of jobs to the map in the argument to, the oldest run first. If it returns an error, it may still have added the
// runs that are in its memory.
func (r *RecentRuns) Add(ctx context.Context, to map[string][]operate.Brief, jobs []string) error {
	select {
	case r.turn <- struct{}{}: // even if no time is left, because runs in memory need no time
	default:
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("read the latest runs under lock %q: %w", r.lockKey, context.Cause(ctx))
		}
	}
	defer func() { <-r.turn }()
	var err error
	if time.Since(r.read) > recentRunsStale {
		if err = r.refresh(ctx, jobs); err != nil {
			err = fmt.Errorf("lock %q: %w", r.lockKey, err)
		}
	}
	for _, name := range jobs {
		if j, ok := r.jobs[name]; ok {
			to[name] = j.briefs()
		}
	}
	return err
}

func (r *RecentRuns) refresh(ctx context.Context, jobs []string) error {
	known, now := r.jobs, time.Now()
	if now.Sub(r.all) > recentRunsReread {
		known = nil
	}
	ask := make([]redisledger.RecentOf, len(jobs))
	for i, name := range jobs {
		ask[i].Job = name
		if entries := known[name].entries; len(entries) > 0 {
			ask[i].After = entries[0].Entry
		}
	}
	newer, err := r.ledger.Recent(ctx, ask, operate.MostRecent)
	if err != nil {
		return err
	}
	fresh := make(map[string]recentJob, len(jobs))
	for i, name := range jobs {
		fresh[name] = recentJob{entries: joined(newer[i].Entries, known[name].entries), idle: newer[i].Idle}
	}
	if known == nil {
		r.all = now
	}
	r.jobs, r.read = fresh, now
	return nil
}

// joined returns the newer entries, followed by the older entries. It drops each older entry that a newer entry replaces. Examples are an
// entry of a lost run that has ended after all, and an entry of missed slots whose number has grown.
func joined(newer, older []redisledger.HistoryEntry) []redisledger.HistoryEntry {
	all := slices.Clone(newer)
	for _, e := range older {
		if !slices.ContainsFunc(newer, func(n redisledger.HistoryEntry) bool { return sameEntry(n, e) }) {
			all = append(all, e)
		}
	}
	return all[:min(len(all), operate.MostRecent)]
}

func sameEntry(a, b redisledger.HistoryEntry) bool {
	if a.Missed != nil && b.Missed != nil {
		return a.Missed.First.Equal(b.Missed.First)
	}
	return a.ID != "" && a.ID == b.ID
}

// briefs returns the entries of the job in short form, the oldest first.
func (j recentJob) briefs() []operate.Brief {
	entries := j.entries
	if i := j.idle; i != nil && (len(entries) == 0 || !sameEntry(entries[0], *i)) {
		entries = append([]redisledger.HistoryEntry{*i}, entries...)
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e redisledger.HistoryEntry) bool {
		return e.Missed != nil && e.Missed.Count == 0 // the entry says that earlier runs are unknown
	})
	entries = entries[:min(len(entries), operate.MostRecent)]
	all := make([]operate.Brief, 0, len(entries))
	for i, e := range slices.Backward(entries) {
		all = append(all, briefOf(e, i == 0))
	}
	return all
}

func briefOf(e redisledger.HistoryEntry, newest bool) operate.Brief {
	if m := e.Missed; m != nil {
		return operate.Brief{
			ID: e.Entry, State: string(redisledger.StateMissed), Started: m.Slot, Count: m.Count, Reason: string(m.Reason),
			NodeID: e.Term.NodeID,
		}
	}
	b := operate.Brief{
		ID: e.Entry, RunID: e.ID, State: string(e.State), Trigger: string(e.Trigger), Started: e.Started,
		Rows: e.Result.Rows, Deleted: e.Result.Deleted, Dead: e.Result.Dead, ExitCode: e.Result.ExitCode, NodeID: e.Term.NodeID,
	}
	if !e.Finished.IsZero() {
		b.Duration = text.Seconds(max(e.Finished.Sub(e.Started), 0))
	}
	if e.Idle != nil {
		b.Count = e.Idle.Runs
	}
	if newest {
		b.Line = lastLine(e.Result.Output)
	}
	return b
}

// lastLine returns the last line of an output that is not empty.
func lastLine(output string) string {
	for len(output) > 0 {
		at := strings.LastIndexByte(output, '\n')
		if line := strings.TrimSpace(output[at+1:]); line != "" {
			return strings.ToValidUTF8(line, "\uFFFD")
		}
		output = output[:max(at, 0)]
	}
	return ""
}
