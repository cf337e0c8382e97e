package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// clockTolerance is how far a node's clock may be off before it is a finding.
const clockTolerance = time.Second

// examineNodes checks the registrations of the nodes and the durations of their runs.
func examineNodes(ctx context.Context, c config.Config, self bool) []Finding {
	store, err := site.OpenRedis(c)
	if err != nil {
		return nil // it is found elsewhere
	}
	defer func() { _ = store.Close() }() // nothing was written
	at, err := site.Open(c, store)
	if err != nil {
		return nil
	}
	defer func() { _ = at.Close() }()
	p, err := at.Election().Picture(ctx, 0)
	if err != nil {
		return nil
	}
	runs := examineRuns(ctx, c, func(lockKey string) history { return at.ForLock(lockKey).Ledger(store) })
	if self { // the part of the configuration under one lock
		c.Node.ID = "" // that of no node
		return append(judgeNodes(p, c), runs...)
	}
	stores, err := site.OpenStores(c, store)
	if err != nil {
		return append(judgeNodes(p, c), runs...)
	}
	defer func() { _ = stores.Without(nil).Close() }() // nothing was written
	return slices.Concat(judgeNodes(p, c), runs, examineStages(ctx, c, stores, at.Ledger(store)))
}

// examineStages finds staged changes that no job of the configuration flushes.
func examineStages(ctx context.Context, c config.Config, stores site.Stores, ledger *redisledger.Ledger) []Finding {
	r := &report{subject: "redis"}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	all, err := tasks.All(c, stores)
	if err != nil {
		return nil // the check of the configuration reports it; the stages of such a job cannot be told from others
	}
	left, err := staging.NewStages(func() map[string]*redisconn.Store { return stores }, ledger).Left(ctx, tasks.StagedBy(all))
	for _, s := range left {
		switch {
		case s.Unknown:
			r.add(SeverityWarning,
				fmt.Sprintf("changes may be staged beside %s, by job %q, and that store is not configured any more", s.At, s.Job),
				"they are in no table", UnknownStoreRemedy(s.At))
		case s.Records > 0:
			r.add(SeverityWarning, fmt.Sprintf("changes are staged that no job flushes: %d beside %s, by job %q", s.Records, s.At, s.Job),
				"they are in no table, and stay in Redis", StageRemedy(s.At))
		}
	}
	if err != nil && ctx.Err() == nil {
		r.add(SeverityInfo, "what jobs that are gone have staged could not be checked: "+err.Error(),
			"changes may be staged that no job flushes", "grant the user of baton their keys, or run doctor again")
	}
	return r.findings
}

// judgeNodes compares the nodes that are there with each other, and with the configuration.
func judgeNodes(p redislock.Picture, c config.Config) []Finding {
	r := &report{}
	if p.Cut {
		r.subject = "redis"
		r.add(SeverityWarning, fmt.Sprintf("the list of nodes is longer than baton reads: %d of them are shown", len(p.Nodes)),
			"nodes are missing from status and page; something wrote names that are no nodes, or each start has another node.id",
			"give each host a fixed node.id, and remove names that are no nodes from the hash {lock_key}:nodes with HDEL")
	}
	leads := slices.IndexFunc(p.Nodes, func(n redislock.Node) bool { return n.ID == p.Leader })
	for _, n := range p.Nodes {
		if p.Now.Sub(n.Seen()) > redislock.GoneAfter {
			continue
		}
		r.subject = fmt.Sprintf("node %q", n.ID)
		if n.Twin != "" {
			r.add(SeverityError, "two processes have this node.id",
				"status shows one of them at a time, an order to this node is obeyed by either, "+
					"and each takes the state of the other for its own",
				"give each host a node.id of its own; by default it is the host name")
		}
		offset := time.Duration(n.ClockMS) * time.Millisecond
		if offset.Abs() > clockTolerance {
			how := "ahead of"
			if offset < 0 {
				how = "behind"
			}
			effect := "slots start early or late by as much"
			if offset.Abs() > job.WrongClock {
				effect = "slots come by the clock of Redis, and the times in its log are wrong"
			}
			r.add(SeverityWarning, fmt.Sprintf("its clock is %v %s that of Redis", offset.Abs().Round(100*time.Millisecond), how),
				"nothing is lost: leases do not go by clocks. But while it leads, "+effect,
				"run chrony or another NTP client on that host")
		}
		if leads >= 0 && n.Version != p.Nodes[leads].Version {
			r.add(SeverityInfo,
				fmt.Sprintf("its version is %s, and the leader, %s, has %s", n.Version, p.Leader, p.Nodes[leads].Version),
				"features of the newer one are there only while it leads", "finish the upgrade")
		}
		switch own := config.Hash(c); {
		case p.Drifts(n):
			r.add(SeverityWarning, "its jobs are configured otherwise than those of the leader, "+p.Leader,
				"which jobs run, and how, depends on the leader",
				"have the same jobs in the configuration of all hosts, and baton reload")
		case n.ID == c.Node.ID && n.ConfigHash != own:
			r.add(SeverityWarning, "it runs with other jobs than this configuration has",
				"the changes are not in force", "baton reload, or name the node's own file with --config")
		}
	}
	return r.findings
}

// StageRemedy returns the remedy for a stage that no job flushes.
func StageRemedy(at staging.At) string {
	drop := "baton stage drop " + shellWord(at.Key)
	if at.Store != "" {
		drop += " --store " + at.Store
	}
	return fmt.Sprintf("to have them flushed, give a job the key %s again until it has run; to lose them, %s", at, drop)
}

// UnknownStoreRemedy returns the remedy for a place in a store that is not configured.
func UnknownStoreRemedy(at staging.At) string {
	return fmt.Sprintf("write the store %q under stores again: if nothing is staged there, that is forgotten, "+
		"and else baton stage list shows it", at.Store)
}

// shellWord quotes a text for a shell, if it needs to be.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/,@+", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
