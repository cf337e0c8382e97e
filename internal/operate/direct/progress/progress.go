// Package progress records how far a preview of all keys has compared, so that another process can continue the preview.
package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/flush/verify"
	"baton/internal/redisledger"
	"baton/internal/text"
)

const (
	// seldom is the shortest interval between two records.
	seldom = time.Second
	// mostExamples is the maximum number of examples of each kind in a record.
	mostExamples = 100
)

// Ledger stores the record of a preview. It is a *redisledger.Ledger.
type Ledger interface {
	KeepPreview(ctx context.Context, s redisledger.OperationState) error
	DropPreview(ctx context.Context, job string) error
}

// Progress records how far a preview has compared, in the ledger, where verifications also record their progress. So another process can
// continue a preview whose process was killed. If the ledger does not answer, the preview goes on, but it cannot be continued.
type Progress struct {
	Notes    []string // how the preview began and ended
	ledger   Ledger
	record   redisledger.OperationState
	restarts int       // how often Redis had restarted before this process continued the preview; -1 if it continues no preview
	kept     bool      // the ledger has a record from which this preview can be continued
	part     float64   // the finished share of the work in that record
	failed   error     // why the last record failed
	next     time.Time // when the next record may be written
}

// New returns the progress of a preview. Its record has the given job and ID, which identifies the rows that the preview compares.
func New(l Ledger, record redisledger.OperationState) *Progress {
	return &Progress{ledger: l, record: record, restarts: -1}
}

// Begin returns the first state of the preview. With resume, this is the state of the interrupted preview whose record is the argument
// was. A preview of another mapping or of another Redis, or of a table that was created again, is not continued, because its counts are
// about other rows. The argument examples is the number of examples of each kind that the preview shows.
func (g *Progress) Begin(was *redisledger.OperationState, resume bool, examples int) (from verify.State) {
	const all = ", so this preview has compared all keys"
	var recorded verify.State
	same := was != nil && was.ID == g.record.ID
	readable := same && json.Unmarshal(was.Progress, &recorded) == nil
	if g.kept = readable; readable {
		g.part = recorded.Part
	}
	switch {
	case !resume && readable:
		g.note("a preview was interrupted at %.0f %%, but this one was not told to --resume it"+all, recorded.Part*100)
	case !resume:
	case was == nil:
		g.note("no interrupted preview is recorded" + all)
	case !same:
		g.note("the mapping of the job, its Redis or its table has changed since the interrupted preview" + all)
	case !readable:
		g.note("another version of baton made the interrupted preview" + all)
	default:
		g.record.Started, g.restarts = was.Started, recorded.Restarts
		g.note("this preview continues one that was interrupted at %.0f %%: its first part was compared between %s and %s, "+
			"and may have changed since", recorded.Part*100, was.Started.Format(time.RFC3339), was.Updated.Format(time.RFC3339))
		if recorded.Result.LacksExamples(examples) {
			g.note("fewer examples are shown than asked for, because the interrupted preview had recorded fewer")
		}
		return recorded
	}
	return from
}

func (g *Progress) note(format string, args ...any) {
	g.Notes = append(g.Notes, fmt.Sprintf(format, args...))
}

// Reached records the state of the preview from time to time.
func (g *Progress) Reached(ctx context.Context, s verify.State) {
	if !time.Now().Before(g.next) {
		g.keep(ctx, s)
	}
}

// keep records the state of the preview, with a limited number of examples. The next record waits ten times as long as this record took, so
// that a Redis that hangs does not stop the preview.
func (g *Progress) keep(ctx context.Context, s verify.State) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
	defer cancel()
	began := time.Now()
	g.record.Updated, g.record.Records = began.UTC(), s.Result.Records
	s.Result = s.Result.Shortened(mostExamples)
	if g.record.Progress, g.failed = json.Marshal(s); g.failed == nil {
		g.failed = g.ledger.KeepPreview(ctx, g.record)
	}
	if g.failed == nil {
		g.kept, g.part = true, s.Part
	}
	g.next = time.Now().Add(max(seldom, 10*time.Since(began)))
}

// End removes the record of a complete preview. If the preview was interrupted, End records the last state, and the error says how to
// continue.
func (g *Progress) End(ctx context.Context, s verify.State, interrupted error) error {
	if interrupted != nil {
		if s.Part > 0 { // otherwise an earlier record may be further
			g.keep(ctx, s)
		}
		switch {
		case g.kept:
			return fmt.Errorf("%w; the preview was interrupted at %.0f %%: to continue it, run baton job preview %s --all --resume",
				interrupted, g.part*100, text.OneLine(g.record.Job))
		case g.failed != nil:
			return fmt.Errorf("%w; the preview cannot be continued: %w", interrupted, g.failed)
		}
		return interrupted
	}
	if g.restarts >= 0 && s.Restarts > g.restarts {
		g.Notes = []string{"Redis restarted or failed over after the preview was interrupted, so its keys were compared again"}
	}
	if !g.kept {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	if err := g.ledger.DropPreview(ctx, g.record.Job); err != nil {
		g.note("the preview is complete, but its progress is still recorded (%v): the next preview needs no --resume", err)
	}
	return nil
}
