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
	"baton/internal/finding"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// clockTolerance is the maximum difference between a node's clock and Redis' clock that does not lead to a finding.
const clockTolerance = time.Second

// examineNodes checks the entries of the nodes in the list of nodes, and how long their runs take.
func examineNodes(ctx context.Context, c config.Config, self bool) []Finding {
	store, err := site.OpenRedis(c)
	if err != nil {
		return nil // another check reports this problem
	}
	defer func() { _ = store.Close() }() // no data was written
	at, err := site.Open(c, store)
	if err != nil {
		return nil
	}
	defer func() { _ = at.Close() }()
	p, err := at.Election().State(ctx, 0)
	if err != nil {
		return nil
	}
	runs := examineRuns(ctx, c, func(lockKey string) history { return at.ForLock(lockKey).Ledger(store) })
	if self { // the part of the configuration under one lock
		c.Node.ID = "" // no node has this id, so this part is compared with no node's jobs
		return append(judgeNodes(p, c), runs...)
	}
	stores, err := site.OpenStores(c, store)
	if err != nil {
		return append(judgeNodes(p, c), runs...)
	}
	defer func() { _ = stores.Without(nil).Close() }() // no data was written
	return slices.Concat(judgeNodes(p, c), runs, examineStages(ctx, c, stores, at.Ledger(store)))
}

// examineStages finds staged changes that no job of the configuration flushes.
func examineStages(ctx context.Context, c config.Config, stores site.Stores, ledger *redisledger.Ledger) []Finding {
	r := &report{subject: "redis"}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	all, err := tasks.All(c, stores)
	if err != nil {
		return nil // the check of the configuration reports it; the stages of such a job cannot be distinguished from other stages
	}
	left, err := staging.NewStages(func() map[string]*redisconn.Store { return stores }, ledger).Left(ctx, tasks.StagedBy(all))
	for _, s := range left {
		switch {
		case s.Unknown:
			r.add(finding.StagesElsewhere,
				fmt.Sprintf("changes may be staged beside %s, by job %q, and that store is not configured any more", s.Location, s.Job),
				"they are in no table", UnknownStoreRemedy(s.Location))
		case s.Records > 0:
			r.add(finding.Stages,
				fmt.Sprintf("changes are staged that no job flushes: %d beside %s, by job %q", s.Records, s.Location, s.Job),
				"they are in no table, and stay in Redis", StageRemedy(s.Location))
		}
	}
	if err != nil && ctx.Err() == nil {
		r.add(finding.UncheckedStages, "the staged changes of removed jobs could not be checked: "+err.Error(),
			"changes may be staged that no job flushes", "grant baton's Redis user access to their keys, or run doctor again")
	}
	return r.findings
}

// judgeNodes compares the nodes that have registered recently with each other and with the configuration.
func judgeNodes(p redislock.ElectionState, c config.Config) []Finding {
	r := &report{}
	if p.Cut {
		r.subject = "redis"
		r.add(finding.ManyNodes, fmt.Sprintf("the list of nodes is longer than baton reads: %d of its entries were read", len(p.Nodes)),
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
			r.add(finding.SameNodeID, "two processes have this node.id",
				"status shows only one of them at a time, either of them may execute an order to this node, "+
					"and each treats the state of the other as its own",
				"give each host a node.id of its own; by default it is the host name")
		}
		offset := time.Duration(n.ClockMS) * time.Millisecond
		if offset.Abs() > clockTolerance {
			how := "ahead of"
			if offset < 0 {
				how = "behind"
			}
			effect := "slots start early or late by this time"
			if offset.Abs() > job.WrongClock {
				effect = "slots follow the clock of Redis, and the times in its log are wrong"
			}
			r.add(finding.NodeClock, fmt.Sprintf("its clock is %v %s that of Redis", offset.Abs().Round(100*time.Millisecond), how),
				"nothing is lost: leases do not go by clocks. But while it leads, "+effect,
				"run chrony or another NTP client on that host")
		}
		if leads >= 0 && n.Version != p.Nodes[leads].Version {
			r.add(finding.OtherVersion,
				fmt.Sprintf("its version is %s, and the leader, %s, has %s", n.Version, p.Leader, p.Nodes[leads].Version),
				"features of the newer one are there only while it leads", "finish the upgrade")
		}
		switch own := config.Hash(c); {
		case p.Drifts(n):
			r.add(finding.OtherJobsThanLeader, "its jobs have another configuration than those of the leader, "+p.Leader,
				"which jobs run, and how, depends on the leader",
				"write the same jobs into the configuration of all hosts, and run baton reload")
		case n.ID == c.Node.ID && n.ConfigHash != own:
			r.add(finding.OtherJobsThanFile, "it runs with other jobs than this configuration has",
				"the changes are not in force", "baton reload, or name the node's own file with --config")
		}
	}
	return r.findings
}

// StageRemedy returns what an operator should do about a stage that no job flushes.
func StageRemedy(at staging.Location) string {
	drop := "baton stage drop " + shellWord(at.Key)
	if at.Store != "" {
		drop += " --store " + at.Store
	}
	return fmt.Sprintf("to flush them, give a job the key %s again until it has run; to drop them, %s", at, drop)
}

// UnknownStoreRemedy returns what an operator should do about a place in a store that is not configured.
func UnknownStoreRemedy(at staging.Location) string {
	return fmt.Sprintf("write the store %q under stores again: then baton stage list shows its staged changes; "+
		"without such changes this warning ends", at.Store)
}

// shellWord quotes a text for a shell, if the text needs quotes.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/,@+", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
