package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/redislock"
)

// clockTolerance is how far a node's clock may be off before it is told.
const clockTolerance = time.Second

// examineNodes looks at what the nodes tell of themselves, and at what their runs have taken.
func examineNodes(ctx context.Context, c config.Config, self bool) []Finding {
	remote, err := Dial(c)
	if err != nil {
		return nil // it is found elsewhere
	}
	defer func() { _ = remote.Close() }() // nothing was written
	p, err := remote.election.Picture(ctx, 0)
	if err != nil {
		return nil
	}
	if self { // the part of the configuration under one lock
		c.Node.ID = "" // that of no node
		return append(judgeNodes(p, c), examineRuns(ctx, remote)...)
	}
	return slices.Concat(judgeNodes(p, c), examineRuns(ctx, remote), examineStages(ctx, remote))
}

// examineStages looks for what no job of the configuration flushes.
func examineStages(ctx context.Context, remote *Remote) []Finding {
	r := &examinationReport{subject: "redis"}
	left, err := remote.LeftStages(ctx)
	for _, s := range left {
		r.add(SeverityWarning, fmt.Sprintf("changes are staged that no job flushes: %d beside %q, by job %q", s.Records, s.Key, s.Job),
			"they are in no table, and stay in Redis", stageRemedy(s.Key))
	}
	if err != nil && ctx.Err() == nil {
		r.add(SeverityInfo, "what jobs that are gone have staged could not be looked at: "+err.Error(), "changes may be staged that no job flushes", "grant the user of baton their keys, or ask again")
	}
	return r.findings
}

// judgeNodes compares the nodes that are there with each other, and with the configuration.
func judgeNodes(p redislock.Picture, c config.Config) []Finding {
	r := &examinationReport{}
	leads := slices.IndexFunc(p.Nodes, func(n redislock.Node) bool { return n.ID == p.Leader })
	for _, n := range p.Nodes {
		if p.Now.Sub(n.Seen()) > goneAfter {
			continue
		}
		r.subject = fmt.Sprintf("node %q", n.ID)
		if n.Twin != "" {
			r.add(SeverityError, "two processes have this node.id", "status shows one of them at a time, an order to this node is obeyed by either, and each takes what the other leaves for its own", "give each host a node.id of its own; by default it is the host name")
		}
		offset := time.Duration(n.ClockMS) * time.Millisecond
		if offset.Abs() > clockTolerance {
			how := "ahead of"
			if offset < 0 {
				how = "behind"
			}
			r.add(SeverityWarning, fmt.Sprintf("its clock is %v %s that of Redis", offset.Abs().Round(100*time.Millisecond), how),
				"nothing is lost: leases do not go by clocks. But while it leads, slots start early or late by as much", "run chrony or another NTP client on that host")
		}
		if leads >= 0 && n.Version != p.Nodes[leads].Version {
			r.add(SeverityInfo, fmt.Sprintf("its version is %s, and the leader, %s, has %s", n.Version, p.Leader, p.Nodes[leads].Version), "what the newer one can do is there only while it leads", "finish the upgrade")
		}
		switch own := config.Hash(c); {
		case drifts(n, p):
			r.add(SeverityWarning, "its jobs are configured otherwise than those of the leader, "+p.Leader, "which jobs run, and how, depends on who leads", "have the same jobs in the configuration of all hosts, and baton reload")
		case n.ID == c.Node.ID && n.ConfigHash != own:
			r.add(SeverityWarning, "it runs with other jobs than this configuration has", "what was changed is not in force", "baton reload, or name the node's own file with --config")
		}
	}
	return r.findings
}
