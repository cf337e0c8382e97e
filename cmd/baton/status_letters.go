package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
	"baton/internal/operate"
)

const (
	// lettersWithin bounds what a database may take: the state is shown without it.
	lettersWithin = time.Second
	// lettersEvery is how often they are counted anew under --watch.
	lettersEvery = 15 * time.Second
)

// letterCount counts the dead letters that wait now, for who asks how the jobs stand: the
// leader's count is up to half a minute old, and older while no node leads.
type letterCount struct {
	letters operate.Operator // nil: who asks may not read the databases
	asked   time.Time
	jobs    map[string]int64
	all     bool // all databases answered
}

func newLetterCount(cmd *cobra.Command, e cmdline.Env) *letterCount {
	e.Stderr = io.Discard // the state itself says whom it was asked of
	letters, err := cmdline.AsksLetters(cmd, e)
	if err != nil {
		return &letterCount{}
	}
	return &letterCount{letters: letters}
}

// add puts them into s, as far as they are known.
func (l *letterCount) add(ctx context.Context, s *diagnose.Snapshot) {
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
		// Where a database did not answer, what the leader counted last is what is known.
		if n, counted := l.jobs[j.Name]; !j.Command && (counted || l.all) {
			s.Jobs[i].DeadLetters = &n
		}
	}
}

func (l *letterCount) close() {
	if l.letters != nil {
		_ = l.letters.Close() // nothing was written
	}
}
