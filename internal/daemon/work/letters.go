package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/tasks"
)

const (
	// lettersLogged is the interval between log lines about a job's dead letters while more dead letters come.
	lettersLogged = time.Minute
	// LettersEvery is the interval between the leader's counts of the waiting dead letters.
	LettersEvery = 30 * time.Second
	// lettersWithin limits the time that the databases have for the count, because the count is repeated soon.
	lettersWithin = 10 * time.Second
)

// lettersLog logs the dead letters of a job while a run is in progress, because a run of a job with the schedule @always never ends.
type lettersLog struct {
	log *zap.Logger
	job string

	mu     sync.Mutex
	more   int64 // number of dead letters since the last line
	recent bool  // a line was written less than lettersLogged ago
}

func (l *lettersLog) add(records int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more += records
	if !l.recent {
		l.write()
	}
}

// write writes a log line about the new dead letters, and plans when the next line may be written. The caller holds l.mu.
func (l *lettersLog) write() {
	l.log.Warn("records were put aside as dead letters", zap.String("job", l.job), zap.Int64("dead", l.more),
		zap.String("remedy", "baton dead list --count --job "+l.job+" shows why; correct that, then replay them"))
	l.more, l.recent = 0, true
	time.AfterFunc(lettersLogged, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.recent = false; l.more > 0 {
			l.write()
		}
	})
}

// LetterCounts counts the waiting dead letters of a node's jobs, for the terms under all of the node's locks. It uses its own connections
// to the databases, which no flush uses.
type LetterCounts struct {
	ask  func(context.Context) (map[string]int64, error)
	turn chan struct{} // held while the fields below are read or written

	asked   time.Time
	waiting map[string]int64
	err     error
}

// NewLetterCounts returns a LetterCounts that calls the function ask when a count is needed.
func NewLetterCounts(ask func(context.Context) (map[string]int64, error)) *LetterCounts {
	return &LetterCounts{ask: ask, turn: make(chan struct{}, 1)}
}

// count returns how many letters of each job waited at the last count, which was a short time ago. It leaves out a job whose database did
// not answer.
func (c *LetterCounts) count(ctx context.Context) (waiting map[string]int64, asked time.Time, err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, asked, context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	if time.Since(c.asked) < LettersEvery/2 {
		return c.waiting, c.asked, c.err
	}
	c.asked = time.Now()
	c.waiting, c.err = c.ask(ctx)
	return c.waiting, c.asked, c.err
}

// countLetters counts the waiting dead letters repeatedly until ctx ends. It stores the counts in the ledger, where all nodes read them.
func (t *Term) countLetters(ctx context.Context, w Load) {
	const soon = time.Second
	for t.Notes.Unsettled(t.Key) && Rest(ctx, soon) == nil {
		continue // first read the count of the last leader
	}
	jobs := tasks.Names(slices.DeleteFunc(slices.Clone(w.Tasks), func(t Task) bool { return t.Config.IsCommand() }))
	failed := false // the failure is already logged
	for ctx.Err() == nil && len(jobs) > 0 {
		err := t.countLettersOnce(ctx, jobs)
		if err != nil && ctx.Err() == nil && !failed {
			t.Log.Debug("dead letters could not be counted: their metric stays unchanged", zap.Error(err))
		}
		failed = err != nil
		_ = Rest(ctx, LettersEvery)
	}
}

func (t *Term) countLettersOnce(ctx context.Context, jobs []string) error {
	ctx, cancel := context.WithTimeout(ctx, lettersWithin)
	defer cancel()
	waiting, asked, problem := t.Letters.count(ctx)
	changed := map[string]int64{}
	for _, job := range jobs {
		n, counted := waiting[job]
		if !counted {
			continue
		}
		t.Notes.LettersWait(job, n, asked)
		if t.Watch.letters(job) != n {
			changed[job] = n
		}
	}
	if err := t.Ledger.NoteDeadLetters(ctx, changed); err != nil {
		return err
	}
	t.Watch.counted(changed)
	return problem
}

// letters returns how many dead letters of a job wait, as the ledger says. It returns a negative number if the ledger does not contain this
// count.
func (w *Watch) letters(job string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.states[job].DeadLetters; n != nil {
		return *n
	}
	return -1
}

// counted records the counts of dead letters that are now in the ledger.
func (w *Watch) counted(waiting map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for job, n := range waiting {
		st, known := w.states[job]
		if st.DeadLetters = &n; known {
			w.states[job] = st
		}
	}
}
