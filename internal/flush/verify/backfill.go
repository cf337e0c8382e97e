package verify

import (
	"context"
)

// Backfill marks all keys of a source, so that the flush writes their rows. It continues at the place where an earlier backfill stopped.
// The argument rate is the maximum number of keys that Backfill marks in a second. 0 means no limit.
func Backfill(ctx context.Context, s Source, from State, rate int, progress func(State) error) error {
	p := pace{rate: rate}
	for state := from; state.Part < 1 || state.Place != ""; {
		some, err := s.Keys(ctx, state.Place)
		if err != nil {
			return err
		}
		if len(some.Keys) > 0 {
			if err := s.Mark(ctx, some.Keys); err != nil {
				return err
			}
		}
		state.Result.Records += int64(len(some.Keys))
		state.Result.Marked += int64(len(some.Keys))
		state.Place, state.Part = some.Next, max(state.Part, min(some.Part, 1))
		if some.Next == "" && !state.missed(some.Missed) {
			state.Part = 1
		}
		if err := progress(state); err != nil {
			return err
		}
		if err := p.rest(ctx, max(some.Looked, len(some.Keys))); err != nil {
			return err
		}
	}
	return nil
}
