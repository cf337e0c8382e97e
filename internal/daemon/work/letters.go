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
	// lettersWithin bounds what the databases may take over it: it is done again soon.
	lettersWithin = 10 * time.Second
)

// lettersLog logs the records of a job that are put aside, while the run goes on:
// one with @always never ends.
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

// write writes a line, and sees to the next. l.mu is held.
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

// LettersBook is how many dead letters of a node's jobs wait, for the terms of all its locks. It
// asks databases over connections that no flush uses.
type LettersBook struct {
	ask  func(context.Context) (map[string]int64, error)
	turn chan struct{} // held while what follows is read or written

	asked   time.Time
	waiting map[string]int64
	err     error
}

// NewLettersBook asks when it is asked.
func NewLettersBook(ask func(context.Context) (map[string]int64, error)) *LettersBook {
	return &LettersBook{ask: ask, turn: make(chan struct{}, 1)}
}

// count reports how many waited at a time that is not long ago, by job. A job whose database did not
// answer is not among them.
func (b *LettersBook) count(ctx context.Context) (waiting map[string]int64, asked time.Time, err error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, asked, context.Cause(ctx)
	}
	defer func() { <-b.turn }()
	if time.Since(b.asked) < LettersEvery/2 {
		return b.waiting, b.asked, b.err
	}
	b.asked = time.Now()
	b.waiting, b.err = b.ask(ctx)
	return b.waiting, b.asked, b.err
}

// countLetters keeps the count of the dead letters that wait up to date until ctx ends, in the
// ledger, where all nodes have it from.
func (t *Term) countLetters(ctx context.Context, w Load) {
	const soon = time.Second
	for t.Notes.Unsettled(t.Key) && Rest(ctx, soon) == nil {
		continue // what the last leader counted is still to be learned
	}
	jobs := tasks.Names(slices.DeleteFunc(slices.Clone(w.Tasks), func(t Task) bool { return t.Config.IsCommand() }))
	failed := false // that has been logged
	for ctx.Err() == nil && len(jobs) > 0 {
		err := t.countLettersOnce(ctx, jobs)
		if err != nil && ctx.Err() == nil && !failed {
			t.Log.Debug("dead letters could not be counted: their gauge stays what it was", zap.Error(err))
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

// letters is how many dead letters of a job wait, as the ledger has it; below 0: it has none.
func (w *Watch) letters(job string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.states[job].DeadLetters; n != nil {
		return *n
	}
	return -1
}

// counted takes over what is in the ledger now.
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
