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
	// readEvery is the pause between two readings of an election for a node's metrics, whichever node leads. With this pause, the metrics
	// show within about a minute that a node is gone. A node must also be silent for a minute before it counts as gone.
	readEvery = 30 * time.Second
	// scrapedWithin is the maximum age of the last scrape of the metrics. If a standby's metrics were not scraped for longer, the standby
	// does not read the election.
	scrapedWithin = 3 * time.Minute
)

// keepSurroundings updates the metrics about the election and the other nodes until ctx ends. While this node does not lead, it also
// updates the metrics of the jobs. After a failed reading these metrics keep their values, and the metric redis_up shows the failure.
func (c *candidacy) keepSurroundings(ctx context.Context) {
	known := c.readOnce(ctx) // so that the first scrape gets no zeros
	last := time.Now()
	// Not all nodes, and not all locks of a node, must read at the same moment.
	for work.Rest(ctx, c.timing.HeartbeatInterval/2+rand.N(c.timing.HeartbeatInterval)) == nil {
		if known && (time.Since(last) < readEvery || time.Since(c.metrics.Scraped()) > scrapedWithin) {
			continue
		}
		last, known = time.Now(), c.readOnce(ctx) || known
	}
}

// readOnce reads the election once. It reports whether it could read everything.
func (c *candidacy) readOnce(ctx context.Context) bool {
	attempt, cancel := context.WithTimeout(ctx, c.timing.AttemptTimeout)
	defer cancel()
	asked := time.Now()
	p, err := c.election.State(attempt, 0)
	if err != nil {
		return false
	}
	c.elected.Sees(surroundings(p, c.timing.PollInterval, asked, time.Now()))
	if c.elector.Leading() != nil {
		return true
	}
	w, _ := c.current()
	lacks := func(t tasks.Task) *diagnose.Unscheduled { return c.rollout(w).Unscheduled(p, t) }
	return c.watch.ReadOthers(ctx, c.ledger, c.stores, w.Tasks, c.metrics, work.Leader{Owner: p.Owner, Lacks: lacks})
}

// rollout returns the time since which this node uses the workload w, and how long the other nodes may take to use it too.
func (c *candidacy) rollout(w *inventory.Workload) direct.Rollout {
	return direct.Rollout{Since: w.Since, Within: c.timing.RolloutWithin}
}

// surroundings converts an election's state to metrics. The state is dated to the middle between the time of the request (asked) and the
// time of the reply (came).
func surroundings(p redislock.ElectionState, poll time.Duration, asked, came time.Time) metrics.Surroundings {
	seen := direct.ElectionOf(p, poll).Count()
	return metrics.Surroundings{
		Live: seen.Live, Silent: seen.Silent, Drifted: seen.Drifted,
		Paused: p.Paused != nil, Offset: p.Now.Sub(asked.Add(came.Sub(asked) / 2)),
	}
}
