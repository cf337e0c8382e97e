package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"baton/internal/flush"
)

// ErrMoreExtra means that more rows have no record now than when the repair counted them.
var ErrMoreExtra = errors.New("more rows have no record now than before the repair began to mark them")

// repairAll marks the differences. It compares everything again, because only a difference that still exists may be marked. If a marked key
// has no record, the flush deletes its row. So the limits of a pass apply. Before the first mark, the share of rows without a record is
// limited. Later, the number of such rows must not exceed the number that was counted before the first mark.
func (r *comparison) repairAll(ctx context.Context) error {
	if may := r.options.May; may != nil { // also if the repair continues in another process, because the job may have changed
		bounded, err := may(ctx, flush.Unaccepted{Changes: r.Result.Different, Deletes: r.Result.Extra})
		if err != nil {
			return err
		}
		r.bounded = bounded
	}
	if !r.Marking {
		if extra, rows := r.Result.Extra, r.Result.Rows; extra*100 > rows*int64(r.maxPct) {
			return &flush.TooManyVanishedError{Source: r.source.Name(), Table: r.name, Stale: extra, All: rows, MaxPct: r.maxPct}
		}
		r.Marking, r.Place, r.Rounds, r.Restarts = true, "", 0, 0
		r.again()
	}
	err := r.all(ctx)
	if errors.Is(err, ErrNoMarks) {
		r.Result.note("no key was marked, because the next run of the job reads everything")
		return nil
	}
	return err
}

// ErrMoreDifferent means that more rows differ now than when the repair counted them, and that an operator has not accepted the additional
// rows as the job's rows.
var ErrMoreDifferent = errors.New("more rows differ now than before the repair began to mark them, and no more may be changed")

// checkShown refuses to mark more rows without a record than were found before the first mark. If the rows do not belong to the job yet, it
// also refuses to mark more differing rows than were found.
func (r *comparison) checkShown() error {
	switch {
	case !r.Marking:
		return nil
	case r.bounded && r.Marks.Different > r.Result.Different:
		return fmt.Errorf("table %q: %w: there were %d. No further row was marked. Repair again: a new repair counts the rows anew", r.name,
			ErrMoreDifferent, r.Result.Different)
	case r.Marks.Extra <= r.Result.Extra:
		return nil
	}
	return fmt.Errorf("table %q: %w: there were %d. No further row was marked. Find out what deletes keys, then repair again",
		r.name, ErrMoreExtra, r.Result.Extra)
}

// mark marks keys, so that the flush writes their rows again. It marks no key before a repair has compared everything.
func (r *comparison) mark(ctx context.Context, keys []string) error {
	if !r.Marking || len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	err := r.source.Mark(ctx, slices.Compact(keys))
	if err == nil {
		r.Result.Marked += int64(len(keys))
	}
	return err
}
