package job

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// maxSleep is the maximum sleep of the loop: within this time the loop notices that the clock was set, or that the machine was
	// suspended.
	maxSleep = 10 * time.Second
	// lingering is the time that a drain may take before the log names the runs that delay it.
	lingering = time.Second
)

// session is one term of a Runner. One goroutine, the loop, owns it. Runs and requests to the ledger have their own goroutines, which
// pass their results to the loop as functions.
type session struct {
	*Runner
	log *zap.Logger

	ctx    context.Context // ends with the term; its cause is also the cause of the runs' contexts
	stop   context.CancelCauseFunc
	events chan func()               // called by the loop
	gone   chan struct{}             // closed when the loop has ended
	fatal  error                     // why the term must end; nil: it need not end
	over   atomic.Pointer[time.Time] // when the term ended; nil before

	leadership
	jobs        map[string]*scheduledJob
	queue       queue
	goroutines  int                        // runs with a goroutine
	comparing   bool                       // the clocks are being compared
	doubted     bool                       // a slot waits that is in the future by the ledger's clock
	eased       time.Time                  // when slots that seemed to be in the future were last retried because of the ledger's answer
	acting      int                        // runs that claim or work; the other runs only record
	limit       int                        // maximum of simultaneous runs; 0: unlimited
	occupied    int                        // runs that count for the limit
	waitForRoom map[*scheduledJob]struct{} // jobs that wait for room

	idle           func(ctx context.Context, jobs []string) []bool // Workload.Idle
	idleCandidates idleCandidates                                  // runs of this round of the loop that may have nothing to do

	claimLimiter   StartLimiter // limiter of runs that claim
	processLimiter StartLimiter // limiter of runs that start a process
	outbox         *outbox
	reports        *reporter
	closing        chan<- error // the caller of EndFirst; nil: no caller
}

func (r *Runner) newSession(ctx context.Context, term Term, w Workload) *session {
	s := &session{
		Runner:         r,
		log:            r.cfg.Logger.With(zap.String("node_id", term.NodeID), zap.Int64("epoch", term.Epoch)),
		events:         make(chan func()),
		claimLimiter:   NewStartLimiter(),
		processLimiter: NewStartLimiter(),
		gone:           make(chan struct{}),
		jobs:           make(map[string]*scheduledJob, len(w.Jobs)),
		leadership:     leadership{term: term, began: r.nowMillis(), freeSince: term.FreeSince, newID: r.newID},
		limit:          w.MaxConcurrent,
		idle:           w.Idle,
		waitForRoom:    make(map[*scheduledJob]struct{}),
	}
	if s.term.FreeSince = (time.Time{}); s.freeSince.IsZero() {
		s.freeSince = s.began
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, func() { s.over.Store(new(time.Now())) })
	s.reports = &reporter{ctx: s.ctx, log: s.log, cfg: &r.cfg}
	s.outbox = newOutbox(s.ctx, recorder{ledger: r.ledger, term: s.term, cfg: &r.cfg, now: r.nowMillis, log: s.log, post: s.post})
	for _, j := range w.Jobs {
		s.add(j, s.began)
	}
	return s
}

// add adds a job, whose slots begin at the time from.
func (s *session) add(j Job, from time.Time) {
	p := &scheduledJob{machine: &machine{job: j, leadership: &s.leadership}, index: -1}
	s.jobs[j.Name] = p
	s.hand(p, func(m *machine) { m.schedule(from) })
}

func (s *session) run() error {
	names := make([]string, 0, len(s.jobs))
	for name := range s.jobs {
		names = append(names, name)
	}
	go s.askStandings(names, false)
	defer close(s.gone)
	defer s.stop(nil)
	go s.outbox.run()
	timer := time.NewTimer(0)
	defer timer.Stop()
	seen := instant{clock: time.Now(), wall: s.now()}
	for s.ctx.Err() == nil {
		seen = s.checkClock(seen)
		s.startDue()
		s.tryIdleCandidates()
		timer.Reset(s.untilNext())
		select {
		case <-s.ctx.Done():
		case <-timer.C:
		case <-s.cfg.ClockSet:
		case do := <-s.events:
			do()
			s.admit()
		}
	}
	s.tryIdleCandidates()
	s.drain()
	s.reports.reportLost()
	s.reports.reportMisses()
	s.reports.reportCut()
	return s.fatal
}

func (s *session) untilNext() time.Duration {
	if len(s.queue) == 0 {
		return maxSleep
	}
	return min(max(0, s.queue[0].at.Sub(s.now())), maxSleep)
}

// inTerm runs a function in the loop, unless the term ends.
func (s *session) inTerm(do func()) {
	select {
	case s.events <- do:
	case <-s.ctx.Done():
	}
}

// post runs a function in the loop as long as the loop exists.
func (s *session) post(do func()) {
	select {
	case s.events <- do:
	case <-s.gone:
	}
}

// drain waits for every run after the runs' contexts have ended. Results are recorded only while this node leads, so drain must not
// mistake a ledger that does not answer for work that does not end.
func (s *session) drain() {
	s.stop(nil)
	for _, p := range s.jobs {
		for _, it := range p.queued {
			answer(it.reply, ErrNotLeader)
		}
	}
	ticker := time.NewTicker(lingering)
	defer ticker.Stop()
	logged := false
	var enough <-chan time.Time
	for outbox := s.outbox.gone; s.goroutines > 0 || outbox != nil; {
		if s.acting == 0 && enough == nil {
			enough = time.After(min(s.cfg.OnIdle(), 2*s.cfg.FinishTimeout)) // a healthy ledger answers earlier
		}
		if s.goroutines == 0 {
			s.outbox.close()
		}
		s.noteProgress(time.Now())
		select {
		case do := <-s.events:
			do()
		case <-outbox:
			outbox = nil // its time is over, or it has recorded all
		case <-enough:
			s.log.Warn("term ended before all run results were recorded; the next leader counts unrecorded runs "+
				"as lost",
				zap.Int("runs", s.goroutines))
			return
		case <-ticker.C:
			if !logged {
				s.logLingering()
			}
			logged = true
		}
	}
}

func (s *session) logLingering() {
	var jobs, runs []string
	for _, a := range s.Running() {
		jobs, runs = append(jobs, a.Job), append(runs, a.ID)
	}
	if len(runs) > 0 {
		fields := append(jobFields(slices.Compact(slices.Sorted(slices.Values(jobs)))),
			zap.Strings("run_ids", runs[:min(len(runs), namedAtMost)]), zap.Error(context.Cause(s.ctx)))
		s.log.Warn("term ended; waiting for these runs to return", fields...)
	}
}

// fail ends the term.
func (s *session) fail(err error) {
	if s.ctx.Err() == nil {
		s.fatal = err
		s.stop(err)
	}
}

// answer sends err to a channel. Only the first call for a channel has an effect, because the channel has room for one answer.
func answer(to chan<- error, err error) {
	if to == nil {
		return
	}
	select {
	case to <- err:
	default:
	}
}
