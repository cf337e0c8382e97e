package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
)

const (
	// lettersWithin bounds the time of a database: after it the state is shown without the count.
	lettersWithin = time.Second
	// lettersEvery is how often --watch counts the letters again.
	lettersEvery = 15 * time.Second
)

// LetterCount counts the dead letters that wait now, for a Snapshot: the
// leader's count is up to half a minute old, and older while no node leads.
type LetterCount struct {
	letters Operator // nil: the user may not read the databases
	asked   time.Time
	jobs    map[string]int64
	all     bool // all databases answered
}

// NewLetterCount counts by letters; nil: the leader's counts are all there is.
func NewLetterCount(letters Operator) *LetterCount { return &LetterCount{letters: letters} }

// Add puts the counts into s, as far as they are known.
func (l *LetterCount) Add(ctx context.Context, s *diagnose.Snapshot) {
	if l.letters == nil {
		return
	}
	if time.Since(l.asked) > lettersEvery {
		ctx, cancel := context.WithTimeout(ctx, lettersWithin)
		defer cancel()
		jobs, err := l.letters.Waiting(ctx)
		l.asked, l.jobs, l.all = time.Now(), jobs, err == nil
	}
	for i, j := range s.Jobs {
		// For a database that did not answer, the leader's last count stays.
		if n, counted := l.jobs[j.Name]; !j.Command && (counted || l.all) {
			s.Jobs[i].DeadLetters = &n
		}
	}
}

// Close ends the connections to the databases.
func (l *LetterCount) Close() {
	if l.letters != nil {
		_ = l.letters.Close() // nothing was written
	}
}
