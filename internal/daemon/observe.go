package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/crash"
	"baton/internal/daemon/abdication"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/outage"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/status/metrics"
	"baton/internal/text"
	"baton/internal/trace"
)

// observer turns the elector's events into log lines, metrics, the status that systemd shows, and the lease file.
type observer struct {
	log     *zap.Logger
	metrics *metrics.Election
	notify  func(state string)
	jobs    func() []string // returns the jobs under the lock; nil: no jobs
	// steppedDown is called with the reason when a term has ended by order; it may be nil.
	steppedDown func(why elector.Code)
	lockKey     string
	leaseFile   string        // "" without a runtime directory
	poll        time.Duration // how long other nodes go first after a step-down
	coolDown    *abdication.CoolDown
	elector     *elector.Elector
	epochs      *epochs.Memory
	outage      *outage.Outage // of the Redis in which the election takes place
	traces      *trace.Tracer  // nil: there are no traces
	nodeID      string
	incarnation string // identifies this process among the processes with that node id

	files sync.Mutex  // guards the lease file
	lease crash.Lease // the lease of the running term

	mu         sync.Mutex
	epoch      int64     // the epoch of the running or last term
	began      time.Time // that term
	role       string    // what this node does, as systemd shows it
	leads      bool      // this node leads, under epoch
	storeAway  bool      // Redis does not answer
	storeSince time.Time // since when Redis answers, or does not answer
}

func (o *observer) observe(ev elector.Event) {
	log := o.log
	defer o.epochs.Heard(ev.Epoch, ev.Lease) // makes keepFiles write the files, after the event was handled
	switch ev.Kind {
	case elector.EventWon:
		o.won(log, ev)
	case elector.EventStandby:
		o.standsBy(log, ev.Holder)
	case elector.EventWaiting:
		log.Info("standing by: no node leads", zap.String("reason", ev.Reason))
		o.does("standby, no node leads: " + ev.Reason)
	case elector.EventStopping:
		log.Info("stepping down: ending the jobs", zap.Int64("epoch", ev.Epoch), zap.String("reason", ev.Reason))
		o.does("stopping: " + ev.Reason)
	case elector.EventStoreLost:
		o.outage.Lost(o.lockKey, ev.Err)
		o.storeChanged(true)
	case elector.EventStoreBack:
		o.outage.Back(o.lockKey)
		o.storeChanged(false)
	case elector.EventRenewal:
		outcome := renewalOutcome(ev.Err)
		if outcome == "refused" || outcome == "unknown" {
			o.outage.NotRenewed()
		}
		o.metrics.Renewal(outcome, ev.Took)
		o.raised(ev.Epoch)
		log.Debug("renewed", zap.Int64("epoch", ev.Epoch), zap.Duration("took", ev.Took), zap.Error(ev.Err))
	default:
		if ev.Kind.Ends() {
			o.ended(log, ev)
		}
	}
}

func (o *observer) standsBy(log *zap.Logger, holder string) {
	if holder == "" {
		log.Warn("standing by: the lock is held by a client that is not baton; does that client share election.lock_key with " +
			"baton on purpose?")
		o.does("standby, the lock is held by a client that is not baton")
		return
	}
	log.Info("standing by", zap.String("leader", holder))
	o.does("standby, leader " + holder)
}

func (o *observer) won(log *zap.Logger, ev elector.Event) {
	o.noteLease(log, ev) // first, because a crash before this would hold the lock up for the rest of the lease
	log.Info("leading", zap.Int64("epoch", ev.Epoch))
	o.mu.Lock()
	o.epoch, o.began = ev.Epoch, time.Now()
	o.mu.Unlock()
	o.doesLead(ev.Epoch)
	o.metrics.Won(ev.Epoch)
	if term := o.elector.Leading(); term != nil {
		o.metrics.Lease(term.UntilHardStop)
	}
}

// noteLease writes the lease file when a term begins.
func (o *observer) noteLease(log *zap.Logger, ev elector.Event) {
	if o.leaseFile == "" {
		return
	}
	o.files.Lock()
	defer o.files.Unlock()
	o.lease = crash.Lease{LockKey: o.lockKey, Owner: ev.Owner, Epoch: ev.Epoch}
	if err := crash.WriteLease(o.leaseFile, o.lease); err != nil {
		log.Warn("cannot write the lease file: leading without it", zap.Error(err))
	}
}

// raised records that the term's epoch was raised above an epoch in a database. The method keepFiles writes the epoch to the files later,
// because a renewal must not wait for a disk.
func (o *observer) raised(epoch int64) {
	o.mu.Lock()
	higher := epoch > o.epoch
	o.epoch = max(o.epoch, epoch)
	leading := o.leads
	o.mu.Unlock()
	if !higher {
		return
	}
	o.metrics.Epoch(epoch)
	if leading {
		o.doesLead(epoch)
	}
}

// keepFiles updates the epoch file and the lease file until ctx ends.
func (o *observer) keepFiles(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			o.epochs.Write()
			return
		case <-o.epochs.Changed():
			o.epochs.Write()
			o.updateLease()
		}
	}
}

// updateLease writes the lease file again if the term's epoch has risen.
func (o *observer) updateLease() {
	o.mu.Lock()
	epoch := o.epoch
	o.mu.Unlock()
	o.files.Lock()
	defer o.files.Unlock()
	if o.lease.Owner == "" || epoch <= o.lease.Epoch {
		return
	}
	o.lease.Epoch = epoch
	if err := crash.WriteLease(o.leaseFile, o.lease); err != nil {
		o.log.Warn("cannot write the new epoch to the lease file", zap.Error(err))
	}
}

func (o *observer) ended(log *zap.Logger, ev elector.Event) {
	fields := []zap.Field{
		zap.String("event", string(ev.Kind)), zap.Int64("epoch", ev.Epoch), zap.String("reason", ev.Reason), zap.Error(ev.Err),
	}
	if ev.Kind == elector.EventLost || ev.Kind == elector.EventExpired {
		log.Warn("no longer leading", fields...)
	} else {
		log.Info("no longer leading", fields...)
	}
	if ev.Kind == elector.EventSteppedDown {
		if o.steppedDown != nil {
			o.steppedDown(ev.Code)
		}
		o.coolDown.Begin(o.poll, ev.Reason)
	}
	o.does("standby")
	var jobs []string
	if o.jobs != nil {
		jobs = o.jobs()
	}
	o.metrics.Ended(string(ev.Kind), jobs...)
	o.trace(ev)
	// A lock that could not be released may still exist for `release --crashed`.
	if o.leaseFile == "" {
		return
	}
	o.files.Lock()
	defer o.files.Unlock()
	o.lease = crash.Lease{}
	if ev.Released {
		if err := crash.RemoveLease(o.leaseFile); err != nil {
			log.Warn("cannot remove the lease file", zap.Error(err))
		}
	}
}

// trace sends the trace of a term that has ended.
func (o *observer) trace(ev elector.Event) {
	if o.traces == nil {
		return
	}
	o.mu.Lock()
	began := o.began
	o.mu.Unlock()
	failure := ""
	if ev.Kind == elector.EventLost || ev.Kind == elector.EventExpired {
		failure = ev.Reason
	}
	work.TraceTerm(o.traces, ev.Owner, began, failure,
		trace.Attribute{Key: "baton.lock_key", Value: o.lockKey}, trace.Attribute{Key: "baton.epoch", Value: ev.Epoch},
		trace.Attribute{Key: "baton.node_id", Value: o.nodeID}, trace.Attribute{Key: "baton.incarnation", Value: o.incarnation},
		trace.Attribute{Key: "baton.ended", Value: string(ev.Kind)}, trace.Attribute{Key: "baton.reason", Value: ev.Reason})
}

// does makes systemd's status show the role of this node, which is not the leader.
func (o *observer) does(role string) { o.becomes(role, false) }

// doesLead makes systemd's status show that this node leads.
func (o *observer) doesLead(epoch int64) { o.becomes(fmt.Sprint("leading epoch ", epoch), true) }

func (o *observer) becomes(role string, leads bool) {
	o.mu.Lock()
	o.role, o.leads = role, leads
	o.mu.Unlock()
	o.show()
}

func (o *observer) storeChanged(away bool) {
	o.mu.Lock()
	o.storeAway, o.storeSince = away, time.Now()
	o.mu.Unlock()
	o.metrics.Redis(!away)
	o.show()
}

func (o *observer) show() {
	o.mu.Lock()
	words := o.role
	if o.storeAway {
		words = strings.TrimPrefix(words+"; waiting for redis", "; ")
	}
	o.mu.Unlock()
	o.notify(text.OneLine(words))
}

// since returns the time since which Redis has been available or unavailable.
func (o *observer) since() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.storeSince
}

func renewalOutcome(err error) string {
	switch {
	case err == nil:
		return "renewed"
	case errors.Is(err, heartbeat.ErrLost):
		return "lost"
	case errors.Is(err, elector.ErrRefused):
		return "refused"
	}
	return "unknown"
}
