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

// Errors of a replay, matched by errors.Is. The letter is unchanged.
var (
	// ErrReplayed: the letter was replayed before.
	ErrReplayed = errors.New("the dead letter was replayed already")
	// ErrRowThere: the table has a row of the record's key, which may be newer.
	ErrRowThere = errors.New("the table has a row of that key, and it may be newer than the record")
	// ErrStillRefused: the database refuses the row again.
	ErrStillRefused = errors.New("it still does not fit")
)

// Replay is one dead letter that is to be written.
type Replay struct {
	ID, Job string
	Plan    *row.Plan // of the job as it is now
	Row     row.Row   // the record, converted by the plan's mapping
	// Overwrite: the record may change an existing row. Without it only insertions are made,
	// and additions if Sum is set.
	Overwrite bool
	// Sum: the row is added to an existing one, which is right in any order.
	Sum bool
}

// The repetition of a replay with unknown outcome.
const (
	replayTries = 5
	replayWait  = 100 * time.Millisecond
)

// Replay writes a dead letter's row and removes the letter, in one transaction that the ledger remembers: it happens once, for any number
// of requests from any number of operators. See DESIGN.md of package flush for why it takes no fence.
func (s *Store) Replay(ctx context.Context, r Replay) error {
	for try := 1; ; try++ {
		err := s.replay(ctx, r)
		switch {
		case err == nil, errors.Is(err, ErrReplayed) && try > 1: // our own earlier try, whose answer was lost
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
	if err := s.Migrate(ctx); err != nil { // to tables that older versions lack
		return err
	}
	var verdict error // our own: the connection is sound
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
		// No shard has this batch: it must not be recorded as the newest one of a shard.
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

// replay is the transaction. The ledger's entry keeps two operators apart: the second
// waits for the first, and then finds it.
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

// harmless is the part that changes no existing row, unless that was requested; done if it is
// empty.
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
	// Without a key every row is a new one: the table's unique index decides, and no
	// flush can come in between.
	fresh := *r.Plan
	fresh.Key, fresh.Keep = nil, false
	row = r.Row
	row.Replace = false
	return &fresh, row, false, nil
}

// whyRefused distinguishes an existing row from one that does not fit.
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

// isThere reports whether the row exists.
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
