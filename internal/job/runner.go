package job

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Config configures a [Runner]. Every field is optional. The hooks are called from several goroutines and must return at once.
type Config struct {
	Logger *zap.Logger
	// ClaimTimeout limits the time of one request to the ledger. Default: 1s.
	ClaimTimeout time.Duration
	// FinishTimeout limits the time for recording a result, including retries. Recording can continue for that time after the term's end,
	// so FinishTimeout must be shorter than the drain time, within which a node ends its work. Default: 1s.
	FinishTimeout time.Duration
	// Clock reads the wall clock. Default: the system's clock. The monotonic part of its times is ignored.
	Clock func() time.Time
	// ClockSet receives a value after Clock was set. Without ClockSet a jump of Clock is noticed within ten seconds.
	ClockSet <-chan struct{}

	// CompareClocks is called in its own goroutine when the wall clock has jumped or differs from the ledger's clock. It compares the
	// clocks, and reports whether the function Clock returns the correct time now.
	CompareClocks func() bool

	// Hold reports whether no run may begin for now, because the renewal of the lease is overdue. Slots that wait too long for Hold or
	// HoldStarts are missed with ReasonLate.
	Hold func() bool

	OnStart  func(Run)    // a slot is claimed and its run begins
	OnFinish func(Record) // a run has ended; its result may not be recorded yet
	OnMissed func(Missed) // slots were not run

	// LogFields returns additional fields for the log line of a run that has ended.
	LogFields func(Run) []zap.Field

	// OnAttempt is called after every request to the ledger on behalf of a job. err is nil after success, and ErrHeldBack if Hold let no
	// request begin. The function Shared reports whether an error concerns the ledger's store and not the job. OnAttempt logs such an error
	// once for all jobs, and no job logs the error again.
	OnAttempt func(job string, err error)
	Shared    func(err error) bool

	// OnIdle is called when the term has ended and no run can change anything any more, because only results are still being recorded. It
	// returns the time limit for recording these results.
	OnIdle func() time.Duration
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.ClaimTimeout <= 0 {
		c.ClaimTimeout = time.Second
	}
	if c.FinishTimeout <= 0 {
		c.FinishTimeout = time.Second
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Hold == nil {
		c.Hold = func() bool { return false }
	}
	if c.OnStart == nil {
		c.OnStart = func(Run) {}
	}
	if c.OnFinish == nil {
		c.OnFinish = func(Record) {}
	}
	if c.CompareClocks == nil {
		c.CompareClocks = func() bool { return false }
	}
	if c.OnMissed == nil {
		c.OnMissed = func(Missed) {}
	}
	if c.LogFields == nil {
		c.LogFields = func(Run) []zap.Field { return nil }
	}
	if c.OnAttempt == nil {
		c.OnAttempt = func(string, error) {}
	}
	if c.Shared == nil {
		c.Shared = func(error) bool { return false }
	}
	if c.OnIdle == nil {
		c.OnIdle = func() time.Duration { return math.MaxInt64 }
	}
}

// Runner starts jobs at their slots while this node leads. It serves one term after another and keeps no state of an ended term.
type Runner struct {
	ledger Ledger
	newID  func() (string, error)
	cfg    Config

	mu       sync.Mutex
	running  map[string]Active // by run ID
	open     map[string]string // jobs of the runs that have begun or may request their claims, by run ID
	resumes  time.Time         // before this time no run begins
	next     map[string]time.Time
	progress time.Time // time of the loop's last round; zero between terms
	session  *session  // nil between terms
}

// Active is a run that has not ended.
type Active struct {
	Run
	Started time.Time
}

// NewRunner returns a Runner that claims slots in the given ledger. The function newID returns the ID of a new run.
func NewRunner(ledger Ledger, newID func() (string, error), cfg Config) *Runner {
	cfg.setDefaults()
	return &Runner{
		ledger:  ledger,
		newID:   newID,
		cfg:     cfg,
		running: make(map[string]Active),
		open:    make(map[string]string),
		next:    make(map[string]time.Time),
	}
}

// Run runs the jobs of one term. It starts nothing after ctx has ended. It returns when the work of every run has returned, without a
// time limit, and the results are recorded, if the ledger answers in time. The error is nil if ctx ended the term. Otherwise the error
// is the reason why the term must end: [ErrNotLeader].
func (r *Runner) Run(ctx context.Context, term Term, w Workload) error {
	if err := validate(w.Jobs); err != nil {
		return err
	}
	s := r.newSession(ctx, term, w)
	r.remember(s)
	defer r.forget()
	return s.run()
}

// Running returns the runs in progress, the longest run first.
func (r *Runner) Running() []Active {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Active, 0, len(r.running))
	for _, a := range r.running {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Active) int { return a.Started.Compare(b.Started) })
	return list
}

// Open returns the jobs of the runs that have begun, or that may begin at any moment because they request their claims. A job with
// several such runs occurs several times.
func (r *Runner) Open() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.open))
}

// HoldStarts lets no run begin for the duration d. It returns the jobs of the runs that Open returns at this moment. Only these runs can be
// in progress until d is over. Slots that come due meanwhile wait unclaimed. The function release ends this hold, and leaves an earlier
// hold in force.
func (r *Runner) HoldStarts(d time.Duration) (open []string, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	earlier, until := r.resumes, time.Now().Add(d)
	if until.After(earlier) {
		r.resumes = until
	}
	return slices.Collect(maps.Values(r.open)), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.resumes.Equal(until) {
			r.resumes = earlier
		}
	}
}

// HoldsStarts reports whether no run may begin now.
func (r *Runner) HoldsStarts() bool {
	r.mu.Lock()
	held := time.Now().Before(r.resumes)
	r.mu.Unlock()
	return held || r.cfg.Hold()
}

// Next returns the time of a job's next slot, if this node leads. An "@always" job has a next slot only while it waits for its restart.
func (r *Runner) Next(job string) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.next[job]
	return at, ok
}

// SinceProgress returns the time since the loop's last round, or zero between terms. This time exceeds maxSleep only if the loop is
// stuck, whatever the jobs and the ledger do.
func (r *Runner) SinceProgress() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress.IsZero() {
		return 0
	}
	return time.Since(r.progress)
}

func (r *Runner) noteProgress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = now
}

// noteNext records the time of a job's next slot, for the method Next. Zero means that the job has no next slot.
func (r *Runner) noteNext(job string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.IsZero() {
		delete(r.next, job)
		return
	}
	r.next[job] = at
}

func (r *Runner) noteStart(run Run, started time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[run.ID] = Active{Run: run, Started: started}
}

func (r *Runner) noteEnd(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, run.ID)
}

func (r *Runner) noteOpen(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[run.ID] = run.Job
}

func (r *Runner) noteClosed(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, run.ID)
}

func (r *Runner) remember(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.resumes = s, time.Time{} // a hold belongs to the term in which it was set
}

func (r *Runner) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = nil
	clear(r.next)
	clear(r.open)
	r.progress = time.Time{}
}

// now returns the wall clock's time without the monotonic reading, which would hide that the clock was set.
func (r *Runner) now() time.Time { return r.cfg.Clock().Round(0) }

// nowMillis returns the present time in milliseconds, the precision of slots.
func (r *Runner) nowMillis() time.Time { return r.now().Truncate(time.Millisecond) }

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}
