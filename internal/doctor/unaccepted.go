package doctor

import (
	"context"
	"fmt"
	"slices"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/finding"
	"baton/internal/flush"
	"baton/internal/flush/sql"
)

// unaccepted returns a finding if a pass of a job has left rows unchanged because the job never wrote them. The finding says how many rows
// they are.
func unaccepted(ctx context.Context, c config.Config, j config.Job, store *sql.Store) []Finding {
	w, err := waitsOf(ctx, c, j, store)
	if err != nil || w == (flush.Unaccepted{}) { // a job that never ran has recorded nothing, and may lack the table for this record
		return nil
	}
	return []Finding{finding.Unaccepted.Of(jobSubject(j.Name), fmt.Sprintf(
		"table %s had rows that the job never wrote, so baton did not change them: %d differ from Redis, and %d have no key in Redis",
		j.Flush.To.Table, w.Changes, w.Deletes),
		"the table is not what Redis has; changes by the application are written",
		fmt.Sprintf("baton job preview %s --all shows them; baton job accept %[1]s accepts them as the job's rows; "+
			"with adopt: insert_only baton never changes them", j.Name))}
}

// waitsOf reads how many rows wait until an operator accepts them as rows of the job, with the job's present mapping.
func waitsOf(ctx context.Context, c config.Config, j config.Job, store *sql.Store) (w flush.Unaccepted, err error) {
	stores := c.AllStores()
	at := slices.IndexFunc(stores, func(r config.Redis) bool { return r.StoreName == j.Flush.From.Store })
	if !tasks.Adopts(j) || at < 0 {
		return w, nil
	}
	of := c
	of.Redis = stores[at]
	redis, err := site.OpenRedis(of)
	if err != nil {
		return w, err
	}
	defer func() { _ = redis.Close() }() // it never connects
	flushed, err := tasks.Flush(j, redis)
	if err != nil {
		return w, err
	}
	flushed.NodeID, flushed.Sink = c.Node.ID, store
	pipeline, err := flush.New(flushed)
	if err != nil {
		return w, err
	}
	digest, err := pipeline.Digest(ctx)
	if err != nil {
		return w, err
	}
	recorded, err := store.Recorded(ctx, j.Name, flush.AdoptionName(digest))
	if err == nil {
		w, _ = flush.ParseWaits(recorded)
	}
	return w, err
}
