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

// lookWithin bounds what an explanation asks of others than Redis.
const lookWithin = time.Second

// Explain tells why a node leads or not; "" is the node of the configuration. What
// the node's own status page and the databases say is added if they answer soon.
func (s *Site) Explain(ctx context.Context, node string) (operate.Explanation, error) {
	return asking(ctx, s, func(l look) (operate.Explanation, error) { return l.explain(ctx, node, s.node.Own), nil })
}

func (l look) explain(ctx context.Context, node string, own func(context.Context) (diagnose.Snapshot, error)) operate.Explanation {
	f := facts{
		node: cmp.Or(node, l.Config.Node.ID), lockKey: l.Config.Election.LockKey, redis: l.Venue.Host(), poll: l.Config.Election.PollInterval,
	}
	f.p, f.unseen = l.picture(ctx)
	address := ""
	if f.node == l.Config.Node.ID {
		address = l.Config.HTTP.Listen
	}
	if n, ok := f.find(f.node); ok {
		address = n.Address
	}
	if own != nil && f.node == l.Config.Node.ID {
		snapshot, _ := own(ctx) // what it knows by itself is there in any case
		f.own = &snapshot
	} else {
		f.own = askNode(ctx, address, f.node, f.lockKey)
	}
	f.fences = l.fences(ctx)
	return f.explain()
}

// fences are the highest epochs in the databases that answer.
func (l look) fences(ctx context.Context) map[string]int64 {
	dbs, err := site.OpenDatabases(l.Config)
	if err != nil {
		return nil // whoever asks may not read the data source names: then it is not told
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

// askNode is what a node tells of itself, nil if it is not to be reached: its page
// may listen on the loopback of another host.
func askNode(ctx context.Context, address, node, lockKey string) *diagnose.Snapshot {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	for _, scheme := range []string{"http", "https"} {
		// Another host's node may have that address, too.
		if s := askPage(ctx, url.URL{Scheme: scheme, Host: address, Path: "/api/v1/status"}); s != nil && s.NodeID == node && s.LockKey == lockKey {
			return s
		}
	}
	return nil
}

// askPage is the state that a node tells at an address; nil if none does.
func askPage(ctx context.Context, page url.URL) *diagnose.Snapshot {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil
	}
	client := http.Client{
		Transport: &http.Transport{ // and no proxy
			DisableKeepAlives: true,
			// Nothing is sent that could be read, and what comes back is as true as over http:
			// a certificate for the address that a node listens at is rare.
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

// facts are what an explanation rests on.
type facts struct {
	node, lockKey, redis string
	poll                 time.Duration
	p                    redislock.Picture
	unseen               error              // why there is no picture
	own                  *diagnose.Snapshot // what the node tells of itself; nil: it was not reached
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
		x.Reasons = append([]operate.Why{{Code: operate.WhyRedis, What: fmt.Sprintf("the election cannot be read from here: %v", f.unseen), Do: "mend that first: without redis nobody leads, and nothing else is known"}}, f.itself()...)
		return x
	}
	x.Leads = f.p.Leader == f.node
	for _, rule := range []func() []operate.Why{f.forged, f.lock, f.paused, f.vacant, f.listed, f.itself, f.drift, f.rewound} {
		x.Reasons = append(x.Reasons, rule()...)
	}
	if len(x.Reasons) == 0 {
		x.Reasons = []operate.Why{{Code: "free", What: fmt.Sprintf("the lock is free, and nothing keeps %s from it: it asks every %v", f.node, f.poll), Do: "ask again in a moment"}}
	}
	return x
}

// forged tells of an epoch that nobody can lead after.
func (f facts) forged() []operate.Why {
	if !f.p.Forged {
		return nil
	}
	what := "the epoch in redis is no number, or more than 30 days ahead of redis' clock: somebody has written it, or that clock is wrong; "
	if f.p.Owner == "" {
		what += "nobody can lead"
	} else {
		what += "nobody can lead after the term that goes on"
	}
	return []operate.Why{{Code: "epoch_refused", What: what, Do: "is redis' clock right? If so: baton fence reset"}}
}

// lock tells who holds it.
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
		do := "is election.lock_key meant for both? If not, give one of them another key"
		if p.Left < 0 {
			do += "; if that client is gone for good: baton lock --break " + f.lockKey
		}
		return []operate.Why{{Code: "foreign", What: fmt.Sprintf("the lock is held by a client that is not baton (owner %s), %s", p.Owner, lease), Do: do}}
	case p.Leader == f.node:
		found = []operate.Why{{Code: "leads", What: fmt.Sprintf("%s leads: %s", f.node, term)}}
	default:
		do := ""
		if n, ok := f.find(f.node); ok && !n.Observer && p.Now.Sub(n.Seen()) <= SilentAfter(f.poll) && p.Paused == nil {
			do = "to have it lead: baton stepdown --to " + f.node
		}
		found = []operate.Why{{Code: "other_leads", What: fmt.Sprintf("%s leads: %s", p.Leader, term), Do: do}}
	}
	if p.Left < 0 {
		found = append(found, operate.Why{Code: "no_expiry", What: "somebody has taken the lease's expiry away: if its leader dies, nobody follows", Do: "the next renewal mends it; if none comes: baton release --owner " + p.Owner})
	}
	if p.StepDown != "" {
		found = append(found, operate.Why{Code: "stepping_down", What: fmt.Sprintf("%s is to step down, %s, and ends its work", p.Leader, p.StepDown), Do: "wait: it releases the lock when its work has ended"})
	}
	return found
}

func (f facts) paused() []operate.Why {
	if f.p.Paused == nil {
		return nil
	}
	since := f.p.Paused.At
	return []operate.Why{{Code: "paused", What: fmt.Sprintf("the election is paused %s, since %s (%v)", f.p.Paused.Reason, text.Stamp(since), text.Duration(f.p.Now.Sub(since))), Do: "baton resume"}}
}

// vacant tells why nobody takes the free lock, or why others go first.
func (f facts) vacant() []operate.Why {
	p := f.p
	if p.Owner != "" {
		return nil
	}
	var found []operate.Why
	if p.Quarantine > 0 {
		found = append(found, operate.Why{Code: "quarantine", What: fmt.Sprintf("redis has restarted, failed over or lost its data: nobody new may lead for another %v, because a leader that redis has forgotten may still trust its lease", text.Duration(p.Quarantine)), Do: "wait"})
	}
	if p.ReservedFor != "" && p.ReservedFor != f.node {
		found = append(found, operate.Why{Code: "reserved", What: fmt.Sprintf("the lock is kept for %s for another %v, as the step-down asked for", p.ReservedFor, text.Duration(p.ReservedLeft)), Do: "wait"})
	}
	if why := withdrawn(p); why != "" {
		found = append(found, operate.Why{Code: "withdrawn", What: why, Do: "mend what is named; it is tried again all the time"})
	}
	own, _ := f.find(f.node)
	for _, n := range p.Candidates() {
		if n.Priority > own.Priority && n.ID != f.node && !own.Observer {
			found = append(found, operate.Why{Code: "priority", What: fmt.Sprintf("%s has priority %d, above the %d of %s, and goes first", n.ID, n.Priority, own.Priority, f.node), Do: "wait: if it does not take the lock within half a second, others do"})
		}
	}
	return found
}

// listed tells what the others know of the node.
func (f facts) listed() []operate.Why {
	n, ok := f.find(f.node)
	if !ok {
		known := make([]string, len(f.p.Nodes))
		for i, other := range f.p.Nodes {
			known[i] = other.ID
		}
		return []operate.Why{{Code: operate.WhyNeverSeen, What: fmt.Sprintf("no node %q has told of itself; known are: %s", f.node, cmp.Or(strings.Join(known, ", "), "none")),
			Do: fmt.Sprintf("is baton running there, under that node.id, with election.lock_key %q and the redis at %s?", f.lockKey, f.redis)}}
	}
	var found []operate.Why
	if ago := f.p.Now.Sub(n.Seen()); ago > SilentAfter(f.poll) && n.ID != f.p.Leader {
		found = append(found, operate.Why{Code: "not_seen", What: fmt.Sprintf("%s was last seen %v ago: its process is down, or cut off from redis", f.node, text.Duration(ago)), Do: "on that host: systemctl status baton; journalctl -u baton"})
	}
	if n.Observer {
		found = append(found, operate.Why{Code: "observer", What: fmt.Sprintf("%s never leads: node.candidate is false in its configuration", f.node), Do: "set node.candidate: true there and restart it, if it should"})
	}
	if aside := AsideOf(f.p, f.node); aside != "" {
		found = append(found, operate.Why{Code: "aside", What: fmt.Sprintf("%s stands aside %s", f.node, aside), Do: "mend what is named; it campaigns again by itself, sooner if nobody else leads"})
	}
	return found
}

// itself tells what only the node knows.
func (f facts) itself() []operate.Why {
	if f.own == nil {
		return nil
	}
	var found []operate.Why
	if !f.own.Redis.OK {
		found = append(found, operate.Why{Code: "node_without_redis", What: fmt.Sprintf("%s itself does not reach redis: %s", f.node, f.own.Redis.Error), Do: "mend its way to " + cmp.Or(f.own.Redis.Host, "redis")})
	}
	if _, known := f.p.Aside[f.node]; !known && f.own.WaitingCode == elector.CodeAside {
		found = append(found, operate.Why{Code: "aside", What: f.node + " " + f.own.Waiting, Do: "wait"})
	}
	return found
}

// drift tells of a node whose jobs are not the leader's: it may lead all the same.
func (f facts) drift() []operate.Why {
	own, ok := f.find(f.node)
	leader, led := f.find(f.p.Leader)
	if !ok || !led || own.ConfigHash == leader.ConfigHash || own.ConfigHash == "" || leader.ConfigHash == "" {
		return nil
	}
	return []operate.Why{{Code: "config_drift", What: fmt.Sprintf("the jobs of %s (%s) are not those of %s, which leads (%s): whoever leads runs its own", f.node, own.ConfigHash, leader.ID, leader.ConfigHash),
		Do: "compare baton config show on both hosts"}}
}

// rewound tells of databases that know a higher epoch than Redis does.
func (f facts) rewound() []operate.Why {
	var found []operate.Why
	for name, epoch := range f.fences {
		if !redislock.Plausible(epoch, f.p.Epoch, f.p.Now.UnixMilli()) {
			found = append(found, operate.Why{Code: "fence_refused", What: fmt.Sprintf("database %q has recorded epoch %d, more than 30 days ahead of redis' clock: a job's fence was written by somebody else, and its flushes fail", name, epoch),
				Do: "baton fence list; then baton fence reset"})
		} else if epoch > f.p.Epoch {
			found = append(found, operate.Why{Code: "fence_ahead", What: fmt.Sprintf("database %q has recorded epoch %d, above the %d of redis, which has lost data or was restored", name, epoch, f.p.Epoch),
				Do: "nothing: the leader raises its epoch above it before it writes there"})
		}
	}
	slices.SortFunc(found, func(a, b operate.Why) int { return strings.Compare(a.What, b.What) })
	return found
}
