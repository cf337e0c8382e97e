package daemon

import (
	"context"
	"fmt"
	"time"

	"baton/internal/redisstore"
)

// Explanation is why a node does not lead, or that it does.
type Explanation struct {
	NodeID  string `json:"node_id"`
	Leads   bool   `json:"leads"`
	Reasons []Why  `json:"reasons"` // the gravest first; when it leads, none
}

// Why is one reason that a node does not lead.
type Why struct {
	What string `json:"what"`
	Do   string `json:"do"` // what to do about it; "" where nothing is amiss
}

// Explain tells every reason why a node does not lead; this host's, if nodeID is empty.
func (r *Remote) Explain(ctx context.Context, nodeID string) (Explanation, error) {
	if nodeID == "" {
		nodeID = r.config.Node.ID
	}
	p, err := r.picture(ctx)
	if err != nil {
		return Explanation{NodeID: nodeID}, err
	}
	return explain(p, nodeID, r.config.Election.LockKey), nil
}

// explain reads the reasons off a picture.
func explain(p redisstore.Picture, nodeID, lockKey string) Explanation {
	e := Explanation{NodeID: nodeID, Leads: p.Owner != "" && p.Leader == nodeID}
	if e.Leads {
		return e
	}
	why := func(do, format string, args ...any) {
		e.Reasons = append(e.Reasons, Why{What: fmt.Sprintf(format, args...), Do: do})
	}
	node, known := findNode(p, nodeID)
	switch ago := p.Now.Sub(node.Seen()); {
	case !known:
		why("is it running, with this lock key and this Redis? Look at its log: journalctl -u baton", "%s has never been seen in the election of lock %q", nodeID, lockKey)
	case ago > goneAfter:
		why("is it running, and does it reach Redis? Look at its log: journalctl -u baton", "%s was last seen %v ago", nodeID, brief(ago))
	}
	if known && node.Observer {
		why("node.candidate: true in its configuration lets it", "%s is no candidate: it only follows the election", nodeID)
	}
	if p.Paused != nil {
		why("baton resume ends the pause", "nobody may lead since %s: paused %s", p.Paused.At.Format(time.DateTime), p.Paused.Reason)
	}
	if p.Quarantine > 0 {
		why("", "Redis has restarted, failed over or lost its data: for another %v only a leader from before may go on", brief(p.Quarantine))
	}
	if a, ok := p.Aside[nodeID]; ok {
		why("", "%s leaves the lead to others for another %v: %s", nodeID, brief(a.Left), a.Reason)
	}
	switch {
	case p.Owner == "":
		explainVacant(p, nodeID, node, why)
	case p.Leader == "" && p.Left < 0:
		why("find out whose it is; if nobody's: baton lock --break "+lockKey, "a client that is not baton holds the lock for ever (owner %s)", p.Owner)
	case p.Leader == "":
		why("is election.lock_key meant for both?", "a client that is not baton holds the lock (owner %s), for another %v unless it renews", p.Owner, brief(p.Left))
	default:
		why("baton stepdown --to "+nodeID+" moves the lead", "%s leads, under epoch %d, for %v; its lease is good for another %v",
			p.Leader, p.Epoch, brief(p.Now.Sub(p.Since)), brief(p.Left))
	}
	if leader, ok := findNode(p, p.Leader); ok && known && leader.ConfigHash != node.ConfigHash {
		why("bring the same configuration to both", "%s has other jobs or databases in its configuration than %s, which leads", nodeID, p.Leader)
	}
	return e
}

// explainVacant tells why a free lock is not this node's.
func explainVacant(p redisstore.Picture, nodeID string, node redisstore.Node, why func(do, format string, args ...any)) {
	before := len(candidates(p))
	if p.ReservedFor != "" && p.ReservedFor != nodeID {
		why("", "the lock is kept for %s for another %v, after a step-down in its favour", p.ReservedFor, brief(p.ReservedLeft))
	}
	for _, n := range candidates(p) {
		if n.ID != nodeID && n.Priority > node.Priority {
			why("", "%s has priority %d, and this node %d: it goes first", n.ID, n.Priority, node.Priority)
		}
	}
	why("", "nobody leads right now; %d nodes are there that may", before)
}

func findNode(p redisstore.Picture, id string) (redisstore.Node, bool) {
	for _, n := range p.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return redisstore.Node{ID: id}, false
}
