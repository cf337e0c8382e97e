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
	// lettersLogged is how often a job's dead letters are logged, while more come.
	lettersLogged = time.Minute
	// LettersEvery is how often the leader counts the dead letters that wait.
	LettersEvery = 30 * time.Second
	// lettersWithin bounds the time of the databases for the count: it is repeated soon.
	lettersWithin = 10 * time.Second
)

// lettersLog logs the dead letters of a job during a run: a run with @always never ends.
type lettersLog struct {
	log *zap.Logger
	job string

	mu     sync.Mutex
	more   int64 // since the last line
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

// write writes a line, and schedules the next one. l.mu is held.
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

// LetterCounts counts the waiting dead letters of a node's jobs, for the terms of all its locks. It uses connections to the databases that
// no flush uses.
type LetterCounts struct {
	ask  func(context.Context) (map[string]int64, error)
	turn chan struct{} // held while the fields below are read or written

	asked   time.Time
	waiting map[string]int64
	err     error
}

// NewLetterCounts makes LetterCounts that call ask when a count is needed.
func NewLetterCounts(ask func(context.Context) (map[string]int64, error)) *LetterCounts {
	return &LetterCounts{ask: ask, turn: make(chan struct{}, 1)}
}

// count returns by job how many waited at a time not long ago. A job whose database did not answer is left out.
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

// countLetters keeps the count of waiting dead letters current until ctx ends, in the ledger, where all nodes read it.
func (t *Term) countLetters(ctx context.Context, w Load) {
	const soon = time.Second
	for t.Notes.Unsettled(t.Key) && Rest(ctx, soon) == nil {
		continue // first learn the count of the last leader
	}
	jobs := tasks.Names(slices.DeleteFunc(slices.Clone(w.Tasks), func(t Task) bool { return t.Config.IsCommand() }))
	failed := false // logged already
	for ctx.Err() == nil && len(jobs) > 0 {
		err := t.countLettersOnce(ctx, jobs)
		if err != nil && ctx.Err() == nil && !failed {
			t.Log.Debug("dead letters could not be counted: their gauge stays unchanged", zap.Error(err))
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

// letters is the ledger's count of a job's waiting dead letters; below 0: it has none.
func (w *Watch) letters(job string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.states[job].DeadLetters; n != nil {
		return *n
	}
	return -1
}

// counted takes the ledger's present counts.
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
