package redisledger

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

const (
	// recentChunk is how many jobs one script reads: Redis serves no other client meanwhile.
	recentChunk = 25
	// recentTail is how much of the newest run's output is read, from the end, in bytes.
	recentTail = 512
)

var recentScript = redis.NewScript(-1, redisconn.Lua(luaFiles, "job_recent"))

// RecentOf is a job whose latest entries are read.
type RecentOf struct {
	Job   string
	After string // the newest entry that is known; "": none is
}

// Recent has the new entries in the history of a job.
type Recent struct {
	Entries []HistoryEntry // the newest first, without errors; the newest has the end of its output
	Idle    *HistoryEntry  // runs that found nothing to do, which are newer and may still become more
}

// Recent returns the latest n entries of each job's history, in that order: a call of a script for every
// 25 jobs.
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

// recentIn decodes the script's reply for one job. Unknown kinds of entries are left out.
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
