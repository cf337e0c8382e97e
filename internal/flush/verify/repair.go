package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"baton/internal/flush"
)

// ErrMoreExtra says that more rows have no record now than when a repair counted them.
var ErrMoreExtra = errors.New("more rows have no record now than before the repair began to mark them")

// repairAll marks the differences. It compares everything once more, since a mark needs a difference that still exists. The flush deletes
// the row of a marked key that has no record, so the guards are those of a pass: before the first mark the share of such rows, and from
// then on their number.
func (r *comparison) repairAll(ctx context.Context) error {
	if may := r.options.May; may != nil { // also if the repair continues in another process: the job may be another one
		if err := may(ctx, r.Result.Extra > 0); err != nil {
			return err
		}
	}
	if !r.Marking {
		if extra, rows := r.Result.Extra, r.Result.Rows; extra*100 > rows*int64(r.maxPct) {
			return &flush.TooManyVanishedError{Source: r.source.Name(), Table: r.name, Stale: extra, All: rows, MaxPct: r.maxPct}
		}
		r.Marking, r.Place, r.Rounds = true, "", 0
		r.again()
	}
	err := r.all(ctx)
	if errors.Is(err, ErrNoMarks) {
		r.Result.note("nothing was marked: the next run of the job reads everything")
		return nil
	}
	return err
}

// checkShown refuses to mark more rows without a record than were found before the first mark.
func (r *comparison) checkShown() error {
	if !r.Marking || r.Marks.Extra <= r.Result.Extra {
		return nil
	}
	return fmt.Errorf("table %q: %w: there were %d. No further row was marked. Find out what deletes keys, then repair again",
		r.name, ErrMoreExtra, r.Result.Extra)
}

// mark makes the flush write keys again, in a repair that has compared everything.
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
