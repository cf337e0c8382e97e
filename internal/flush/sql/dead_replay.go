package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// These are the errors of a replay. If a replay returns one of them, the letter is unchanged. Use errors.Is to match them.
var (
	// ErrReplayed means that the letter was replayed before.
	ErrReplayed = errors.New("the dead letter was replayed already")
	// ErrRowThere means that the table contains a row with the record's key, and the row may be newer than the record.
	ErrRowThere = errors.New("the table has a row with that key, and the row may be newer than the record")
	// ErrStillRefused means that the database refuses the row again.
	ErrStillRefused = errors.New("the record still does not fit the table")
)

// Replay describes how the row of one dead letter is written.
type Replay struct {
	ID, Job string
	Plan    *row.Plan // made from the job's present configuration
	Row     row.Row   // the record, converted by the plan's mapping
	// Overwrite means that the replay may change an existing row. Without Overwrite the replay only inserts a row or, if Sum is set, adds
	// to an existing row.
	Overwrite bool
	// Sum means that the replay adds the row to an existing row. Additions are correct in any order.
	Sum bool
}

// If the outcome of a replay is unknown, baton repeats the replay, up to replayTries attempts in all. The pause before the second attempt
// is replayWait, and each further pause is twice as long.
const (
	replayTries = 5
	replayWait  = 100 * time.Millisecond
)

// Replay writes a dead letter's row and removes the letter, in one transaction with an entry in the ledger. Therefore the row is written
// only once, however many operators request the replay. DESIGN.md of package flush says why Replay needs no fence.
func (s *Store) Replay(ctx context.Context, r Replay) error {
	for try := 1; ; try++ {
		err := s.replay(ctx, r)
		switch {
		case err == nil, errors.Is(err, ErrReplayed) && try > 1: // our own earlier attempt, whose answer was lost
			return nil
		case !errors.Is(err, flush.ErrTransient) || try == replayTries || ctx.Err() != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(replayWait << (try - 1)):
		}
	}
}

func (s *Store) replay(ctx context.Context, r Replay) error {
	if err := s.Migrate(ctx); err != nil { // older versions lack some tables of this method
		return err
	}
	var verdict error // an error of the replay itself, after which the connection is sound
	err := s.transact(ctx, fmt.Sprintf("replay dead letter %s of job %q", r.ID, r.Job), func(tx Session) error {
		plan, replayed, done, err := s.harmless(ctx, tx, r)
		if errors.Is(err, ErrRowThere) {
			verdict = err
			return nil
		}
		if err != nil {
			return err
		}
		batch := flush.Batch{ID: "replay:" + r.ID, Rows: []row.Row{replayed}}
		if done {
			batch.Rows = nil
		}
		// This batch belongs to no shard, so the ledger must not record it as the newest batch of a shard.
		s.newest.Store(newestKey{r.Job, ""}, batch.ID)
		a := application{store: s, fence: flush.Fence{Job: r.Job}, plan: plan, batch: batch}
		verdict, err = a.replay(ctx, tx, r)
		if err == nil && errors.Is(verdict, ErrStillRefused) && plan != r.Plan {
			verdict, err = s.whyRefused(ctx, tx, r, verdict)
		}
		return err
	})
	if err != nil {
		return err
	}
	return verdict
}

// replay runs the transaction of a replay. If two operators replay the same letter, the second transaction waits for the ledger entry of
// the first one and then returns ErrReplayed.
func (a *application) replay(ctx context.Context, tx Session, r Replay) (verdict, err error) {
	err = a.write(ctx, tx)
	switch {
	case errors.Is(err, errApplied):
		return ErrReplayed, nil
	case err != nil:
		return nil, err
	case len(a.dead) > 0:
		return fmt.Errorf("%w: %s", ErrStillRefused, a.dead[0].Error), nil
	}
	found := false
	err = tx.Run(ctx, Task{Query: "dead_parts_drop", Args: []any{r.ID}}, Task{Query: "dead_delete", Args: []any{r.ID, r.Job},
		Then: func(touched int64) error {
			found = touched == 1
			return nil
		}})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return fmt.Errorf("%w any more: %s was dropped", ErrNoLetter, r.ID), nil
	}
	return nil, tx.Commit(ctx)
}

// harmless returns a plan and a row that change no existing row, unless the replay may change an existing row. The result done means that
// there is nothing to write.
func (s *Store) harmless(ctx context.Context, tx Session, r Replay) (plan *row.Plan, row row.Row, done bool, err error) {
	if r.Overwrite || r.Sum && !r.Row.Delete && !r.Row.Replace || len(r.Plan.Key) == 0 || r.Plan.Keep {
		return r.Plan, r.Row, false, nil
	}
	if r.Row.Delete {
		there, err := s.isThere(ctx, tx, r)
		if err == nil && there {
			err = ErrRowThere
		}
		return r.Plan, r.Row, true, err
	}
	// Without a key in the plan every row is inserted, so the table's unique index decides whether the row exists already. No flush can
	// write the row in between.
	fresh := *r.Plan
	fresh.Key, fresh.Keep = nil, false
	row = r.Row
	row.Replace = false
	return &fresh, row, false, nil
}

// whyRefused returns ErrRowThere if the row exists. Otherwise the row does not fit, and whyRefused returns the argument verdict.
func (s *Store) whyRefused(ctx context.Context, tx Session, r Replay, verdict error) (error, error) {
	if err := tx.Run(ctx, Task{Query: "rollback"}); err != nil {
		return nil, err
	}
	there, err := s.isThere(ctx, tx, r)
	if there {
		verdict = ErrRowThere
	}
	return verdict, err
}

// isThere reports whether the table already contains the row of the replay.
func (s *Store) isThere(ctx context.Context, tx Session, r Replay) (there bool, err error) {
	q := s.dialect.Quote
	var same []string
	var args []any
	for _, k := range r.Plan.Key {
		v := &r.Row.Values[k]
		if v.IsNull() || v.IsAbsent() {
			return false, nil
		}
		same, args = append(same, q.Ident(r.Plan.Columns[k].Name)+" = ?"), append(args, Argument(v))
	}
	query := "SELECT 1 FROM " + q.Table(r.Plan.Table.Name) + " WHERE " + strings.Join(same, " AND ")
	err = tx.Read(ctx, query, args, func([]any) error {
		there = true
		return nil
	})
	return there, err
}
