package direct

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/elector"
	"baton/internal/operate"
	"baton/internal/redislock"
	"baton/internal/text"
)

// lookWithin is the time limit for an explanation's requests to servers other than Redis.
const lookWithin = time.Second

// Explain says why a node leads or does not lead. The node "" means the node of the configuration. It also uses the answers of the node's
// own status page and of the databases, if they arrive soon.
func (s *Site) Explain(ctx context.Context, node string) (operate.Explanation, error) {
	return asking(ctx, s, func(l session) (operate.Explanation, error) { return l.explain(ctx, node, s.node.Own), nil })
}

func (l session) explain(ctx context.Context, node string, own func(context.Context) (diagnose.Snapshot, error)) operate.Explanation {
	e := l.Config.Election
	f := facts{node: cmp.Or(node, l.Config.Node.ID), lockKey: e.LockKey, redis: l.LockStores.Host(), poll: e.PollInterval}
	f.p, f.unseen = l.state(ctx)
	address := ""
	if f.node == l.Config.Node.ID {
		address = l.Config.HTTP.Listen
	}
	if n, ok := f.find(f.node); ok {
		address = n.Address
	}
	if own != nil && f.node == l.Config.Node.ID {
		snapshot, _ := own(ctx) // the node has its own Snapshot even if Redis does not answer
		f.own = &snapshot
	} else {
		f.own = askNode(ctx, address, f.node, f.lockKey)
	}
	f.fences = l.fences(ctx)
	return f.explain()
}

// fences returns the highest epoch in each database that answers.
func (l session) fences(ctx context.Context) map[string]int64 {
	dbs, err := site.OpenDatabases(l.Config)
	if err != nil {
		return nil // this user may not be allowed to read the data source names
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	found := map[string]int64{}
	for name, fence := range site.HighestFences(ctx, dbs, site.JobsByDatabase(l.Config), func(string, error) {}) {
		found[name] = fence.Epoch
	}
	_ = dbs.Close() // nothing was written
	return found
}

// askNode returns a node's own status, or nil if the node cannot be reached. For example, its page may listen on the loopback address of
// another host.
func askNode(ctx context.Context, address, node, lockKey string) *diagnose.Snapshot {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	for _, scheme := range []string{"http", "https"} {
		// A node on another host may listen at the same address.
		s := askPage(ctx, url.URL{Scheme: scheme, Host: address, Path: "/api/v1/status"})
		if s != nil && s.NodeID == node && s.LockKey == lockKey {
			return s
		}
	}
	return nil
}

// askPage returns the status that a node serves at an address, or nil.
func askPage(ctx context.Context, page url.URL) *diagnose.Snapshot {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil
	}
	client := http.Client{
		Transport: &http.Transport{ // and no proxy
			DisableKeepAlives: true,
			// This client does not verify certificates, because few nodes have a certificate for the address at which they listen. The
			// request holds no secret, and the answer is as trustworthy as over http.
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	const most = 8 << 20
	var s diagnose.Snapshot
	if json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&s) != nil {
		return nil
	}
	return &s
}

// facts contains the input of an explanation.
type facts struct {
	node, lockKey, redis string
	poll                 time.Duration
	p                    redislock.ElectionState
	unseen               error              // why the state could not be read
	own                  *diagnose.Snapshot // the node's own status; nil if the node was not reached
	fences               map[string]int64   // the highest epoch in each database that answered
}

func (f facts) find(id string) (redislock.Node, bool) {
	i := slices.IndexFunc(f.p.Nodes, func(n redislock.Node) bool { return n.ID == id })
	if i < 0 {
		return redislock.Node{}, false
	}
	return f.p.Nodes[i], true
}

func (f facts) explain() operate.Explanation {
	x := operate.Explanation{NodeID: f.node, LockKey: f.lockKey}
	if f.unseen != nil {
		x.Reasons = because(operate.WhyRedis, "repair the connection to redis first: without redis no node leads, and nothing "+
			"else is known",
			"the election cannot be read from here: %v", f.unseen)
		x.Reasons = append(x.Reasons, f.itself()...)
		return x
	}
	x.Leads = f.p.Leader == f.node
	for _, rule := range []func() []operate.Why{f.forged, f.lock, f.paused, f.vacant, f.listed, f.itself, f.drift, f.rewound} {
		x.Reasons = append(x.Reasons, rule()...)
	}
	if len(x.Reasons) == 0 {
		x.Reasons = because("free", "ask again in a moment",
			"the lock is free, and nothing keeps %s from it: it asks every %v", f.node, f.poll)
	}
	return x
}

// The function because returns one reason, with its code, remedy and text.
func because(code, do, what string, args ...any) []operate.Why {
	return []operate.Why{{Code: code, What: fmt.Sprintf(what, args...), Do: do}}
}

// forged reports an epoch that no later term can exceed.
func (f facts) forged() []operate.Why {
	known := int64(0)
	for _, epoch := range f.fences {
		known = max(known, epoch)
	}
	switch {
	case !f.p.Forged:
		return nil
	case known > 0 && redislock.Plausible(f.p.Epoch, known, f.p.Now.UnixMilli()):
		return nil // a term has raised the epoch above the epoch in a database, so every node accepts it
	}
	consequence := "no node can lead"
	if f.p.Owner != "" {
		consequence = "no node can lead after the present term"
	}
	return because("epoch_refused", "check redis' clock; if it is right, run baton fence reset",
		"the epoch in redis is not a number, or more than 30 days ahead of redis' clock: "+
			"it was written by hand, or that clock is wrong; %s", consequence)
}

// lock reports which node holds the lock.
func (f facts) lock() []operate.Why {
	p := f.p
	lease := fmt.Sprintf("lease %v left", text.Duration(p.Left))
	if p.Left < 0 {
		lease = "without an expiry"
	}
	term := fmt.Sprintf("epoch %d, for %v, %s", p.Epoch, text.Duration(p.Now.Sub(p.Since)), lease)
	var found []operate.Why
	switch {
	case p.Owner == "":
		return nil
	case p.Leader == "":
		do := "does that client share election.lock_key with baton on purpose? If not, give one of them another key"
		if p.Left < 0 {
			do += "; if that client is gone for good: baton lock --break " + f.lockKey
		}
		return because("foreign", do, "the lock is held by a client that is not baton (owner %s), %s", p.Owner, lease)
	case p.Leader == f.node:
		found = because("leads", "", "%s leads: %s", f.node, term)
	default:
		do := ""
		if n, ok := f.find(f.node); ok && !n.Observer && !f.silent(n) && p.Paused == nil {
			do = "to have it lead: baton stepdown --to " + f.node
		}
		found = because("other_leads", do, "%s leads: %s", p.Leader, term)
	}
	if p.Left < 0 {
		found = append(found, because("no_expiry", "the next renewal sets the expiry again; if no renewal comes: baton "+
			"release --owner "+p.Owner,
			"the expiry of the lease was removed: if the leader dies, no other node can take the lock")...)
	}
	if p.StepDown != "" {
		found = append(found, because("stepping_down", "wait: that node releases the lock when its work has ended",
			"%s is to step down, %s, and ends its work", p.Leader, p.StepDown)...)
	}
	return found
}

// silent reports whether a node has not registered for too long.
func (f facts) silent(n redislock.Node) bool { return f.p.Now.Sub(n.Seen()) > SilentAfter(f.poll) }

func (f facts) paused() []operate.Why {
	if f.p.Paused == nil {
		return nil
	}
	since := f.p.Paused.At
	return because("paused", "baton resume",
		"the election is paused %s, since %s (%v)", f.p.Paused.Reason, text.Stamp(since), text.Duration(f.p.Now.Sub(since)))
}

// vacant reports why no node takes the free lock, or why other nodes have precedence.
func (f facts) vacant() []operate.Why {
	p := f.p
	if p.Owner != "" {
		return nil
	}
	var found []operate.Why
	if p.Quarantine > 0 {
		found = append(found, because("quarantine", "wait",
			"redis has restarted, failed over or lost its data: no new leader for another %v, "+
				"because a leader that redis has forgotten may still trust its lease", text.Duration(p.Quarantine))...)
	}
	if p.ReservedFor != "" && p.ReservedFor != f.node {
		found = append(found, because("reserved", "wait",
			"the lock is kept for %s for another %v, as the step-down asked for", p.ReservedFor, text.Duration(p.ReservedLeft))...)
	}
	if why := withdrawn(p); why != "" {
		found = append(found, because("withdrawn", "repair the named cause; baton keeps trying", "%s", why)...)
	}
	own, _ := f.find(f.node)
	for _, n := range p.Candidates() {
		if n.Priority > own.Priority && n.ID != f.node && !own.Observer {
			found = append(found, because("priority", "wait: if that node does not take the lock within half a second, other nodes do",
				"%s has priority %d, above the %d of %s, and goes first", n.ID, n.Priority, own.Priority, f.node)...)
		}
	}
	return found
}

// listed reports the content of the node's entry in Redis, or that there is no such entry.
func (f facts) listed() []operate.Why {
	n, ok := f.find(f.node)
	switch {
	case !ok && f.p.Cut:
		return because("nodes_cut", "baton doctor says how to shorten the list",
			"node %q is not among the %d entries of the list of nodes that were read; the list is longer", f.node, len(f.p.Nodes))
	case !ok:
		known := make([]string, len(f.p.Nodes))
		for i, other := range f.p.Nodes {
			known[i] = other.ID
		}
		do := fmt.Sprintf("is baton running on that host, under that node.id, with election.lock_key %q and the "+
			"redis at %s?", f.lockKey, f.redis)
		return because(operate.WhyNeverSeen, do,
			"no node %q has registered; the known nodes are: %s", f.node, cmp.Or(strings.Join(known, ", "), "none"))
	}
	var found []operate.Why
	if f.silent(n) && n.ID != f.p.Leader {
		found = append(found, because("not_seen", "on that host: systemctl status baton; journalctl -u baton",
			"%s was last seen %v ago: its process is down, or cut off from redis", f.node, text.Duration(f.p.Now.Sub(n.Seen())))...)
	}
	if n.Observer && n.Jobs != nil && len(n.Jobs) == 0 {
		found = append(found, because("no_jobs", "add jobs to its configuration, then baton reload there; or set node.candidate: true",
			"%s does not campaign: its configuration has no jobs", f.node)...)
	} else if n.Observer {
		found = append(found, because("observer", "set node.candidate: true there and reload it, if it should",
			"%s never leads: node.candidate is false in its configuration", f.node)...)
	}
	if coolDown := CoolDownOf(f.p, f.node); coolDown != "" {
		found = append(found, because("aside", "repair the named cause; the node campaigns again by itself, sooner if no other node leads",
			"%s stands aside %s", f.node, coolDown)...)
	}
	return found
}

// The method itself reports facts that only the explained node knows.
func (f facts) itself() []operate.Why {
	if f.own == nil {
		return nil
	}
	var found []operate.Why
	if !f.own.Redis.OK {
		found = append(found, because("node_without_redis", "repair its connection to "+cmp.Or(f.own.Redis.Host, "redis"),
			"%s itself does not reach redis: %s", f.node, f.own.Redis.Error)...)
	}
	if _, known := f.p.CoolDowns[f.node]; !known && f.own.WaitingCode == elector.CodeCoolDown {
		found = append(found, because("aside", "wait", "%s %s", f.node, f.own.Waiting)...)
	}
	return found
}

// drift reports a node whose jobs differ from the leader's jobs. Such a node may still lead.
func (f facts) drift() []operate.Why {
	own, ok := f.find(f.node)
	leader, led := f.find(f.p.Leader)
	if !ok || !led || own.ConfigHash == leader.ConfigHash || own.ConfigHash == "" || leader.ConfigHash == "" {
		return nil
	}
	return because("config_drift", "compare baton config show on both hosts",
		"the jobs of %s (%s) are not those of %s, which leads (%s): a leader runs the jobs of its own configuration",
		f.node, own.ConfigHash, leader.ID, leader.ConfigHash)
}

// rewound reports databases with a higher epoch than the epoch in Redis.
func (f facts) rewound() []operate.Why {
	var found []operate.Why
	for name, epoch := range f.fences {
		if !redislock.Plausible(epoch, f.p.Epoch, f.p.Now.UnixMilli()) {
			found = append(found, because("fence_refused", "baton fence list; then baton fence reset",
				"database %q has recorded epoch %d, more than 30 days ahead of redis' clock: "+
					"a job's fence was not written by baton, and its flushes fail", name, epoch)...)
		} else if epoch > f.p.Epoch {
			found = append(found, because("fence_ahead", "do nothing: the leader raises its epoch above this epoch before it writes there",
				"database %q has recorded epoch %d, above the %d of redis, which has lost data or was restored", name, epoch, f.p.Epoch)...)
		}
	}
	slices.SortFunc(found, func(a, b operate.Why) int { return strings.Compare(a.What, b.What) })
	return found
}
