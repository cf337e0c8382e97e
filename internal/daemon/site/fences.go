package site

import (
	"context"

	"baton/internal/config"
	"baton/internal/flush"
)

// JobsByDatabase returns the names of the jobs that write to each database.
func JobsByDatabase(c config.Config) map[string][]string {
	jobs := map[string][]string{}
	for _, j := range c.Jobs {
		jobs[j.Flush.To.Database] = append(jobs[j.Flush.To.Database], j.Name)
	}
	return jobs
}

// HighestFences asks each database for the fence with the highest epoch among the given jobs. It leaves out a database that does not answer
// before ctx ends, or that has no fences yet. If a database returns an error, HighestFences calls the function failed with it.
func HighestFences(
	ctx context.Context, dbs Databases, jobs map[string][]string, failed func(database string, err error),
) map[string]flush.Fence {
	type answer struct {
		name  string
		fence flush.Fence
		err   error
	}
	answers := make(chan answer, len(dbs)) // room for all answers, because the caller may have returned
	asked := 0
	for name, db := range dbs {
		if len(jobs[name]) == 0 {
			continue
		}
		asked++
		go func() {
			fence, err := db.HighestFence(ctx, jobs[name])
			answers <- answer{name, fence, err}
		}()
	}
	found := map[string]flush.Fence{}
	for range asked {
		select {
		case <-ctx.Done():
			return found
		case a := <-answers:
			if a.err != nil {
				failed(a.name, a.err)
			} else if a.fence.Epoch > 0 {
				found[a.name] = a.fence
			}
		}
	}
	return found
}
