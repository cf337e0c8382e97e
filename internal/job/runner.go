package job

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Config configures a [Runner]. Every field is optional. The hooks are called from several goroutines and must return at once.
type Config struct {
	Logger *zap.Logger
	// ClaimTimeout is the time limit of one request to the ledger. Default: 1s.
	ClaimTimeout time.Duration
	// FinishTimeout is the time limit for recording a result, retries included. Recording can
	// go on for so long after the term's end, so it must be shorter than the drain. Default: 1s.
	FinishTimeout time.Duration
	// Clock reads the wall clock. Default: the system's. Its monotonic reading is ignored.
	Clock func() time.Time
	// ClockSet receives after Clock was set. Without it a jump of Clock is noticed within ten seconds.
	ClockSet <-chan struct{}

	// CompareClocks is called, apart, when the wall clock has jumped or is not the ledger's: it compares them, and reports whether Clock
	// is right now.
	CompareClocks func() bool

	// Hold reports whether no run may begin for now, because the renewal of the lease is
	// overdue. Slots that wait too long are missed as ReasonLate.
	Hold func() bool

	OnStart  func(Run)    // a slot is claimed and its run begins
	OnFinish func(Record) // a run has ended; it may not be recorded yet
	OnMissed func(Missed) // slots were not run

	// LogFields are added to the log line of a run that has ended.
	LogFields func(Run) []zap.Field

	// OnAttempt is called after every request to the ledger on behalf of a job; err is nil
	// after success, and ErrHeldBack if Hold let none begin. Shared reports whether an error
	// concerns the ledger's store and not the job: OnAttempt logs it once for all jobs, and no
	// job logs it again.
	OnAttempt func(job string, err error)
	Shared    func(err error) bool

	// OnIdle is called when the term has ended and no run can change anything any more; only
	// results are still being recorded. It returns the time limit for that.
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

// Runner starts jobs at their slots while this node leads. It serves one term after another and
// keeps nothing of an ended term.
type Runner struct {
	ledger Ledger
	newID  func() (string, error)
	cfg    Config

	mu       sync.Mutex
	running  map[string]Active // by run ID
	next     map[string]time.Time
	progress time.Time // of the loop's last round; zero between terms
	session  *session  // nil between terms
}

// Active is a run that goes on.
type Active struct {
	Run
	Started time.Time
}

// NewRunner returns a Runner that claims slots in ledger and names runs by newID.
func NewRunner(ledger Ledger, newID func() (string, error), cfg Config) *Runner {
	cfg.setDefaults()
	return &Runner{
		ledger:  ledger,
		newID:   newID,
		cfg:     cfg,
		running: make(map[string]Active),
		next:    make(map[string]time.Time),
	}
}

// Run runs the jobs of one term. It starts nothing after ctx has ended. It returns when the work
// of every run has returned, however long that takes, and the results are recorded, if the
// ledger answers in time. The error is nil if ctx ended the term, else it is why the term must
// end: [ErrNotLeader].
func (r *Runner) Run(ctx context.Context, term Term, w Workload) error {
	if err := validate(w.Jobs); err != nil {
		return err
	}
	s := r.newSession(ctx, term, w)
	r.remember(s)
	defer r.forget()
	return s.run()
}

// Running returns the runs that go on, the longest first.
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

// Next returns the time of a job's next slot, if this node leads. An "@always" job has one only
// while it waits for its restart.
func (r *Runner) Next(job string) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.next[job]
	return at, ok
}

// SinceProgress is the time since the loop's last round; zero between terms. It exceeds maxSleep
// only if the loop is stuck, regardless of jobs and ledger.
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

// noteNext records the time of a job's next slot; zero: none.
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

func (r *Runner) remember(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
}

func (r *Runner) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = nil
	clear(r.next)
	r.progress = time.Time{}
}

// now is the wall clock without the monotonic reading, which would hide that the clock was set.
func (r *Runner) now() time.Time { return r.cfg.Clock().Round(0) }

// nowMillis is the time in the precision of slots.
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
