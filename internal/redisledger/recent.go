package redisledger

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

const (
	// recentChunk limits the number of jobs that one script reads, because Redis serves no other client during a script.
	recentChunk = 25
	// recentTail is the number of bytes to read of the newest run's output, from its end.
	recentTail = 512
)

var recentScript = redis.NewScript(-1, redisconn.Lua(luaFiles, "job_recent"))

// RecentOf names a job whose latest entries are read.
type RecentOf struct {
	Job   string
	After string // the newest known entry; "": no entry is known
}

// Recent contains the new entries of a job's history.
type Recent struct {
	Entries []HistoryEntry // the newest first, without errors; the newest has the end of its output
	Idle    *HistoryEntry  // the entry of newer runs that found nothing to do; more runs may still join it
}

// Recent returns up to n of the latest entries of each job's history that the caller does not know yet. The results are in the order
// of the argument jobs. Recent runs one script for every 25 jobs.
func (l *Ledger) Recent(ctx context.Context, jobs []RecentOf, n int) ([]Recent, error) {
	all := make([]Recent, 0, len(jobs))
	for from := 0; from < len(jobs); from += recentChunk {
		some := jobs[from:min(from+recentChunk, len(jobs))]
		args := redis.Args{2 * len(some)}
		for _, j := range some {
			args = args.Add(l.keys.Job(j.Job), l.keys.Runs(j.Job))
		}
		args = args.Add(n, recentTail)
		for _, j := range some {
			args = args.Add(j.After)
		}
		replies, err := redis.Values(l.script(ctx, recentScript, args))
		if err == nil && len(replies) != len(some) {
			err = fmt.Errorf("%d replies for %d jobs", len(replies), len(some))
		}
		for i := 0; err == nil && i < len(some); i++ {
			var r Recent
			r, err = recentIn(some[i].Job, replies[i])
			all = append(all, r)
		}
		if err != nil {
			return nil, fmt.Errorf("read the latest runs of the jobs: %w", err)
		}
	}
	return all, nil
}

// recentIn decodes the part of recentScript's reply that concerns one job. It leaves out entries of an unknown kind.
func recentIn(name string, reply any) (r Recent, err error) {
	parts, err := redis.Values(reply, nil)
	if err != nil || len(parts) == 0 {
		return r, fmt.Errorf("job %q: %w", name, err)
	}
	text, err := redis.String(parts[0], nil)
	if err != nil {
		return r, fmt.Errorf("job %q: %w", name, err)
	}
	if idle, ok := idleEntry(text); ok {
		if e, ok := historyEntry(name, idle.id, idle.fields); ok {
			r.Idle = &e
		}
	}
	for _, part := range parts[1:] {
		texts, err := redis.Strings(part, nil)
		if err != nil {
			return r, fmt.Errorf("job %q: %w", name, err)
		}
		if len(texts) == 0 || len(texts)%2 != 1 {
			continue
		}
		fields := make(map[string]string, len(texts)/2)
		for i := 1; i < len(texts); i += 2 {
			fields[texts[i]] = texts[i+1]
		}
		if e, ok := historyEntry(name, texts[0], fields); ok {
			r.Entries = append(r.Entries, e)
		}
	}
	return r, nil
}
