package direct

import (
	"context"

	"baton/internal/operate"
)

// Letters returns dead letters.
func (s *Site) Letters(ctx context.Context, f operate.LetterFilter, n int) ([]operate.Letter, error) {
	return reading(ctx, s, func(d *deadLetters) ([]operate.Letter, error) {
		if f.ID != "" {
			l, err := d.find(ctx, f.ID, f.Database)
			if err != nil {
				return nil, err
			}
			return []operate.Letter{l}, nil
		}
		cut := recordShown
		if f.Whole {
			cut = 0
		}
		return d.list(ctx, f, n, cut)
	})
}

// LetterKeys returns the keys of dead letters.
func (s *Site) LetterKeys(ctx context.Context, f operate.LetterFilter, n int) ([]operate.LetterKey, error) {
	return reading(ctx, s, func(d *deadLetters) ([]operate.LetterKey, error) {
		found, err := d.keys(ctx, f)
		return found[:min(n, len(found))], err
	})
}

// Reasons counts dead letters by their reason.
func (s *Site) Reasons(ctx context.Context, f operate.LetterFilter) ([]operate.LetterReason, error) {
	return reading(ctx, s, func(d *deadLetters) ([]operate.LetterReason, error) { return d.reasons(ctx, f) })
}

// Waiting counts the dead letters of each flush job. The result does not contain a job whose database did not answer. Waiting does not wait
// for other callers, because the leader also uses it for its counts.
func (s *Site) Waiting(ctx context.Context) (map[string]int64, error) {
	d, leave, err := s.takeLetters()
	if err != nil {
		return nil, err
	}
	defer leave()
	return d.waiting(ctx)
}
