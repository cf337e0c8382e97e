package daemon

import (
	"context"
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// node is what a running daemon can tell of itself.
type node struct {
	config   config.Config
	version  string
	venue    *venue
	election election
	ledger   *redisstore.Ledger
	tasks    []task
	elector  *elector.Elector
	runner   *job.Runner
	observer *observer
}

// stuckAfter is far beyond the longest pause of the job loop.
const stuckAfter = 2 * time.Minute

// electionStuckAfter is far beyond the longest pause of the election loop: what
// the configuration asks for, and an attempt.
func electionStuckAfter(e config.Election) time.Duration {
	return stuckAfter + 2*max(e.HeartbeatInterval, e.PollInterval) + e.AttemptTimeout
}

// health answers from memory: it must never wait for anything.
func (n *node) health() status.Health {
	term := n.elector.Leading()
	h := status.Health{
		Live: true, Ready: true, Leading: term != nil && term.Trusted(), Leader: n.elector.Holder(), Waiting: n.waiting(),
	}
	if idle := n.elector.SinceProgress(); idle > electionStuckAfter(n.config.Election) {
		h.Live, h.Reason = false, fmt.Sprintf("the election loop has not moved for %v", idle.Round(time.Second))
	} else if idle := n.runner.SinceProgress(); idle > stuckAfter {
		h.Live, h.Reason = false, fmt.Sprintf("the job loop has not moved for %v", idle.Round(time.Second))
	}
	return h
}

// waiting is why this node does not take the lock, although nobody else may hold it.
func (n *node) waiting() string {
	if n.elector.Leading() != nil {
		return ""
	}
	if why := n.elector.Waiting(); why != "" {
		return why
	}
	return n.observer.standsAside()
}

// snapshot gathers the page's content. With an error it still tells what the node
// knows by itself.
func (n *node) snapshot(ctx context.Context) (status.Snapshot, error) {
	own := status.Snapshot{NodeID: n.config.Node.ID, Version: n.version, LockKey: n.config.Election.LockKey, Now: time.Now(), Role: status.RoleStandby}
	own.Redis = status.Redis{Host: n.venue.host(), OK: true, Since: n.observer.since()}
	trouble := n.elector.StoreTrouble()
	if trouble != nil {
		own.Role = status.RoleConnecting
		own.Redis.OK, own.Redis.Error = false, trouble.Error()
	}
	if n.elector.Leading() != nil {
		own.Role = status.RoleLeading
	}
	own.Waiting = n.waiting()
	own.Jobs = configuredJobs(n.tasks, own.Now)
	return gather(ctx, own, []view{{n.config.Election.LockKey, n.election, n.ledger, n.tasks}})
}
