package doctor

import (
	"context"
	"fmt"
	"slices"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/sql"
)

// unaccepted says how many rows a pass of a job has left alone, since the job never wrote them.
func unaccepted(ctx context.Context, c config.Config, j config.Job, store *sql.Store) []Finding {
	w, err := waitsOf(ctx, c, j, store)
	if err != nil || w == (flush.Waits{}) { // a job that never ran has recorded nothing, and perhaps no table to do so
		return nil
	}
	return []Finding{{Severity: SeverityWarning, Subject: jobSubject(j.Name), What: fmt.Sprintf(
		"table %s had rows that the job never wrote, and a pass has left them alone: %d that differ from Redis, and %d without a key there",
		j.Flush.To.Table, w.Changes, w.Deletes),
		Consequence: "the table is not what Redis has; changes by the application are written",
		Remedy: fmt.Sprintf("baton job preview %s --all shows them; baton job accept %[1]s accepts that they are the job's; "+
			"adopt: insert_only leaves them for good", j.Name)}}
}

// waitsOf reads how many rows wait, for a job's present mapping.
func waitsOf(ctx context.Context, c config.Config, j config.Job, store *sql.Store) (w flush.Waits, err error) {
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
