package verify

import (
	"context"
)

// Backfill marks all keys of a source for the flush, from where an earlier one was. rate is how many keys it
// marks a second at most; 0: as many as it can.
func Backfill(ctx context.Context, s Source, from State, rate int, progress func(State) error) error {
	p := pace{rate: rate}
	for state := from; state.Part < 1 || state.Place != ""; {
		keys, next, part, err := s.Keys(ctx, state.Place)
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := s.Mark(ctx, keys); err != nil {
				return err
			}
		}
		state.Place, state.Part = next, max(state.Part, min(part, 1))
		if next == "" {
			state.Part = 1
		}
		state.Result.Records += int64(len(keys))
		state.Result.Marked += int64(len(keys))
		if err := progress(state); err != nil {
			return err
		}
		if err := p.rest(ctx, len(keys)); err != nil {
			return err
		}
	}
	return nil
}
