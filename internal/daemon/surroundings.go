package daemon

import (
	"context"
	"math/rand/v2"
	"time"

	"baton/internal/daemon/inventory"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/diagnose"
	"baton/internal/operate/direct"
	"baton/internal/redislock"
	"baton/internal/status/metrics"
)

const (
	// readEvery is the interval at which a node reads an election for its metrics, under any
	// leader. So a node that is gone shows within about a minute, as long as it takes to count
	// as gone.
	readEvery = 30 * time.Second
	// scrapedWithin is the maximum age of the last scrape: a standby whose metrics are not
	// scraped does not read.
	scrapedWithin = 3 * time.Minute
)

// keepSurroundings updates the metrics of the node's surroundings until ctx ends. While this
// node does not lead, it updates those of the jobs, too. After a failed reading the metrics keep
// their values: redis_up shows the failure.
func (c *candidacy) keepSurroundings(ctx context.Context) {
	known := c.readOnce(ctx) // the first scrape gets no zeros
	last := time.Now()
	// Not all nodes, and not all locks of one, at the same moment.
	for work.Rest(ctx, c.timing.HeartbeatInterval/2+rand.N(c.timing.HeartbeatInterval)) == nil {
		if known && (time.Since(last) < readEvery || time.Since(c.metrics.Scraped()) > scrapedWithin) {
			continue
		}
		last, known = time.Now(), c.readOnce(ctx) || known
	}
}

// readOnce reports whether it has seen everything.
func (c *candidacy) readOnce(ctx context.Context) bool {
	attempt, cancel := context.WithTimeout(ctx, c.timing.AttemptTimeout)
	defer cancel()
	asked := time.Now()
	p, err := c.election.Picture(attempt, 0)
	if err != nil {
		return false
	}
	c.elected.Sees(surroundings(p, c.timing.PollInterval, asked, time.Now()))
	if c.elector.Leading() != nil {
		return true
	}
	w, _ := c.current()
	lacks := func(t tasks.Task) *diagnose.Unscheduled { return c.rollout(w).Unscheduled(p, t) }
	return c.watch.ReadOthers(ctx, c.ledger, c.stores, w.Tasks, c.metrics, work.Led{Owner: p.Owner, Lacks: lacks})
}

// rollout is since when a workload is in force, and how long the others may take to follow.
func (c *candidacy) rollout(w *inventory.Workload) direct.Rollout {
	return direct.Rollout{Since: w.Since, Within: c.timing.RolloutWithin}
}

// surroundings converts a picture to metrics. The picture is dated to the middle between the
// request (asked) and the reply (came).
func surroundings(p redislock.Picture, poll time.Duration, asked, came time.Time) metrics.Surroundings {
	seen := direct.ElectionOf(p, poll).Count()
	return metrics.Surroundings{
		Live: seen.Live, Silent: seen.Silent, Drifted: seen.Drifted,
		Paused: p.Paused != nil, Offset: p.Now.Sub(asked.Add(came.Sub(asked) / 2)),
	}
}
