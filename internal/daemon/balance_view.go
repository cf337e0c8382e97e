package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"baton/internal/balance"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/operate/direct"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// aboutToBegin is a time before a job's next run. During this time the job's lock is no longer handed over, because the hand-over would
// delay the run.
const aboutToBegin = 300 * time.Millisecond

// balanceView is a candidacy as the balancer sees it.
type balanceView struct{ *candidacy }

func (v balanceView) LockKey() string { return v.candidacy.lockKey }

func (v balanceView) Leads() bool { return v.elector.Leading() != nil }

func (v balanceView) Idle() bool {
	w, _ := v.current()
	return isIdle(w.Tasks, v.runner.Next, v.runner.Open(), time.Now())
}

// isIdle reports whether a handover cuts off no run, because no run is open or about to begin. The argument open has the jobs of the open
// runs. A job that always runs does not count.
func isIdle(tasks []work.Task, next func(job string) (time.Time, bool), open []string, now time.Time) bool {
	always := map[string]bool{}
	for _, t := range tasks {
		always[t.Config.Name] = schedule.IsAlways(t.Schedule)
		at, ok := next(t.Config.Name)
		if ok && !always[t.Config.Name] && at.Sub(now) < aboutToBegin {
			return false
		}
	}
	return !slices.ContainsFunc(open, func(job string) bool { return !always[job] })
}

func (v balanceView) Known() (balance.Known, error) {
	_, barred := v.elector.Waiting()
	h := balance.Known{Leader: v.elector.Holder(), Barred: barred != ""}
	h.Free = h.Leader == "" && !v.elector.Held()
	return h, v.elector.StoreTrouble()
}

func (v balanceView) Read(ctx context.Context) (balance.Election, error) {
	p, err := v.election.State(ctx, 0)
	return electionIn(p), err
}

// electionIn converts an election's state to the balancer's view of the election.
func electionIn(p redislock.ElectionState) balance.Election {
	e := balance.Election{
		Now: p.Now, Lease: p.TTL, Leader: p.Leader, Free: p.Owner == "",
		Barred: p.Paused != nil || p.Quarantine > 0 || p.StepDown != "" || p.Owner == "" && p.ReservedFor != "",
	}
	for _, n := range p.Candidates() {
		e.Nodes = append(e.Nodes, balance.Node{
			ID: n.ID, Priority: n.Priority, Config: n.ConfigHash, Seen: n.Seen(),
			CoolingDown: direct.CoolDownOf(p, n.ID) != "", Reluctant: n.Reluctant,
		})
	}
	return e
}

func (v balanceView) HandOver(ctx context.Context, to, reason string) error {
	term := v.elector.Leading()
	if term == nil {
		return errors.New("the term has ended in the meantime")
	}
	w, _ := v.current()
	hold := v.timing.TTL
	if deadline, ok := ctx.Deadline(); ok { // until then the order may reach Redis
		hold += time.Until(deadline)
	}
	return orderIfIdle(v.runner, w.Tasks, hold, func() (possible bool, err error) {
		err = v.election.StepDownOwner(ctx, term.Owner(), elector.Order{To: to, Reason: reason, Code: elector.CodeBalance})
		return len(v.lockStores.Stores) > 1 || !isRefused(err), err
	})
}

// orderIfIdle gives an order to hand the lock over, unless a run is open or about to begin. From this moment on no run begins, because the
// leader obeys the order some time later and would cut the run off. The function order also reports whether the leader may obey the order
// although it has failed. If so, starts are held for the duration hold, in which the leader obeys the order or loses its lease.
func orderIfIdle(r *job.Runner, tasks []work.Task, hold time.Duration, order func() (possible bool, err error)) error {
	open, release := r.HoldStarts(hold)
	if !isIdle(tasks, r.Next, open, time.Now()) {
		release()
		return errors.New("a run has begun in the meantime")
	}
	possible, err := order()
	if !possible {
		release()
	}
	return err
}

// isRefused reports whether err shows that the election's only server has not stored an order.
func isRefused(err error) bool {
	return errors.Is(redisconn.Explain(err), redisconn.ErrRefused) || errors.Is(err, elector.ErrRefused) ||
		errors.Is(err, redislock.ErrNoLeader)
}

// balanceViews returns the node's candidacies, for the balancer.
func (n *node) balanceViews() []balance.Candidacy {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []balance.Candidacy
	for _, c := range n.candidacies {
		if !c.withdrawn {
			list = append(list, balanceView{c})
		}
	}
	return list
}

// reluctance is how long a node that has stepped down by order takes no lock merely to spread the work. The operator who gave the order has
// plans for that host.
const reluctance = 10 * time.Minute

// steppedDown makes this node reluctant after a term has ended by order. An order of the balancer does not count.
func (n *node) steppedDown(why elector.Code) {
	if why == elector.CodeBalance {
		return
	}
	n.mu.Lock()
	if n.willing != nil {
		n.willing.Stop()
	}
	n.willing = time.AfterFunc(reluctance, func() { n.beReluctant(false) })
	n.mu.Unlock()
	n.beReluctant(true) // before this node registers its presence again
}

func (n *node) beReluctant(yes bool) {
	n.reluctant.Store(yes)
	for _, c := range n.all() {
		c.present()
	}
}
