package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
)

const (
	// lettersWithin is the time limit for a database. After that time the state is shown without the count.
	lettersWithin = time.Second
	// lettersEvery is how often --watch counts the letters again.
	lettersEvery = 15 * time.Second
)

// LetterCount counts the dead letters that wait now, for a Snapshot. The leader's count may be half a minute old, and is older while no
// node leads.
type LetterCount struct {
	letters Operator // nil if the user may not read the databases
	asked   time.Time
	jobs    map[string]int64
	all     bool // all databases have answered
}

// NewLetterCount returns a LetterCount that asks the Operator in the argument letters. If this argument is nil, a Snapshot keeps the
// leader's counts.
func NewLetterCount(letters Operator) *LetterCount { return &LetterCount{letters: letters} }

// Add writes the known counts to s.
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
		// If a database did not answer, the leader's last count stays.
		if n, counted := l.jobs[j.Name]; !j.Command && (counted || l.all) {
			s.Jobs[i].DeadLetters = &n
		}
	}
}

// Close closes the connections to the databases.
func (l *LetterCount) Close() {
	if l.letters != nil {
		_ = l.letters.Close() // nothing was written
	}
}
