package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql/kept"
)

// These are errors of Undelete. If Undelete returns one of them, it has written nothing. Use errors.Is to match them.
var (
	// ErrNotKept means that the row is not kept, or no longer kept.
	ErrNotKept = errors.New("no such deleted row is kept: its time may be over, or a node of an older version put it back")
	// ErrUnfit means that the row no longer fits the table.
	ErrUnfit = errors.New("the row no longer fits the table")
)

// KeptRow is a row of the table of deleted rows.
type KeptRow struct {
	ID              int64
	Job, Table, Key string // Key is JSON, like Row: see package kept
	Why             flush.Why
	Epoch           int64     // the epoch of the leader that deleted the row
	At              time.Time // the database's time, like KeepUntil and PutBackAt
	KeepUntil       time.Time
	PutBackAt       time.Time // when an operator last put the row back, or zero
	Row             string    // "" if the row is longer than the caller allows
}

// KeptFilter selects the deleted rows that match every field that is set.
type KeptFilter struct {
	ID   int64
	Job  string
	Text string // the key or the row contains this text literally
}

// KeptRows returns deleted rows of this election, the newest row first. The argument limit is the maximum number of rows. The argument
// longest is the maximum number of characters of a row's text: KeptRows omits a longer text. If longest is 0, it omits no text.
func (s *Store) KeptRows(ctx context.Context, f KeptFilter, limit, longest int) ([]KeptRow, error) {
	if longest <= 0 {
		longest = 1 << 30
	}
	c := &where{}
	if s.lockKey != "" {
		c.add("lock_key = ?", s.lockKey)
	}
	if f.ID != 0 {
		c.add("id = ?", f.ID)
	}
	if f.Job != "" {
		c.add("job = ?", f.Job)
	}
	s.contain(c, f.Text, "row_key", "old_row")
	const doing = "list the deleted rows"
	putBack := "NULL" // the tables of an older version do not contain the time
	switch done, err := s.migratedTo(ctx, doing, "put_back"); {
	case err != nil:
		return nil, err
	case done:
		putBack = fmt.Sprintf(s.dialect.Fragments.At, "put_back_at")
	}
	var found []KeptRow
	query := fmt.Sprintf(s.queries["kept_list"], putBack, c.text)
	err := s.look(ctx, doing, query, slices.Concat([]any{longest}, c.args, []any{limit}), func(row []string) (err error) {
		k := KeptRow{Job: row[1], Table: row[2], Key: row[3], Why: flush.Why(row[4]), Row: row[9]}
		var wrong [4]error
		k.ID, wrong[0] = strconv.ParseInt(row[0], 10, 64)
		k.Epoch, wrong[1] = strconv.ParseInt(row[5], 10, 64)
		k.At, err = letterTime(row[6])
		k.KeepUntil, wrong[2] = letterTime(row[7])
		if row[8] != "" {
			k.PutBackAt, wrong[3] = letterTime(row[8])
		}
		found = append(found, k)
		return errors.Join(err, errors.Join(wrong[:]...))
	})
	return found, err
}

// CountKept returns how many deleted rows of a job are kept, at most the argument limit, and the earliest time at which one of the counted
// rows may be removed.
func (s *Store) CountKept(ctx context.Context, job string, limit int) (n int64, first time.Time, err error) {
	c := &where{}
	if s.lockKey != "" {
		c.add("lock_key = ?", s.lockKey)
	}
	c.add("job = ?", job)
	query := fmt.Sprintf(s.queries["kept_count"], c.text)
	err = s.look(ctx, "count the deleted rows", query, append(c.args, limit), func(row []string) (err error) {
		if n, err = strconv.ParseInt(row[0], 10, 64); err == nil && n > 0 {
			first, err = letterTime(row[1])
		}
		return err
	})
	return n, first, err
}

// Undelete inserts a kept row into its table, and records the time in the table of deleted rows, in one transaction. The kept copy stays,
// because a job may overwrite the inserted row later. The transaction commits only if the given fences are still the fences of their jobs.
// The caller read them before it looked into Redis. If a given fence has no epoch, its job must still have no fence. Undelete changes no
// existing row: if the table contains the key, it returns ErrRowThere. If the outcome of the transaction is unknown, Undelete tries again.
func (s *Store) Undelete(ctx context.Context, fences []flush.Fence, k KeptRow) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	table, err := s.Table(ctx, k.Table)
	if err != nil {
		return err
	}
	key, keyErr := kept.Decode(k.Key)
	cells, err := kept.Decode(k.Row)
	if err = errors.Join(err, keyErr); err != nil {
		return err
	}
	q := s.dialect.Quote
	var same, names []string
	var keyArgs, args []any
	for _, c := range key {
		same, keyArgs = append(same, q.Ident(c.Name)+" = ?"), append(keyArgs, c.Value)
	}
	for _, c := range cells {
		i := slices.IndexFunc(table.Columns, func(t row.Column) bool { return t.Name == c.Name })
		switch {
		case i < 0:
			return fmt.Errorf("%w: table %q has no column %q any more", ErrUnfit, k.Table, c.Name)
		case table.Columns[i].Generated && table.Columns[i].Allow == "": // the database computes the column again
		default:
			names, args = append(names, q.Ident(c.Name)), append(args, c.Value)
		}
	}
	there := "SELECT 1 FROM " + q.Table(k.Table) + " WHERE " + strings.Join(same, " AND ")
	restore := fmt.Sprintf(s.queries["kept_restore"], q.Table(k.Table), strings.Join(names, ", "), Repeat("?", len(names)))
	// transact does not get the verdict, because the connection works.
	return s.untilKnown(ctx, k, func(seen *[]string) (verdict, err error) {
		err = s.transact(ctx, fmt.Sprintf("put deleted row %d back into table %q", k.ID, k.Table), func(tx Session) error {
			verdict, err = s.undelete(ctx, tx, fences, k.ID, seen, there, keyArgs, restore, args)
			return err
		})
		return verdict, err
	})
}

// KeptTexts returns the values that a kept row contains in these columns, as texts.
func KeptTexts(keptRow string, columns []row.PlanColumn) ([]string, error) {
	cells, err := kept.Decode(keptRow)
	if err != nil {
		return nil, err
	}
	var found, lost []string
	for _, c := range columns {
		at := slices.IndexFunc(cells, func(cell kept.Cell) bool { return cell.Name == c.Name })
		if at < 0 {
			lost = append(lost, c.Name)
			continue
		}
		found = append(found, Text(cells[at].Value))
	}
	if len(lost) > 0 {
		return nil, fmt.Errorf("the row has no column %s", strings.Join(lost, ", "))
	}
	return found, nil
}

// untilKnown repeats an undeletion until its outcome is known. Each attempt appends to seen the time that the table of deleted rows
// contains for the row. The attempt first locks the row there, so it waits for an earlier attempt that is still being committed. If the
// time has changed, an earlier attempt has succeeded. ErrNotKept and a lasting error do not show whether an earlier attempt has succeeded.
func (s *Store) untilKnown(ctx context.Context, k KeptRow, attempt func(seen *[]string) (verdict, err error)) error {
	var seen []string
	for try, unknown := 1, false; ; try++ {
		verdict, err := attempt(&seen)
		transient := errors.Is(err, flush.ErrTransient)
		unknown = unknown || transient && !errors.As(err, new(unappliedError))
		if transient && try < replayTries && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(replayWait << (try - 1)):
				continue
			}
		}
		switch end := errors.Join(err, verdict); {
		case !unknown || end == nil || errors.Is(end, flush.ErrFenced) || errors.Is(end, ErrRowThere) || errors.Is(end, ErrUnfit):
			return end
		case errors.Is(end, ErrNotKept): // the caller must not conclude from ErrNotKept that nothing was written
			return fmt.Errorf("it is unknown whether deleted row %d is in table %q again, because its copy has been removed meanwhile: "+
				"look for the row in the table", k.ID, k.Table)
		default:
			return fmt.Errorf("it is unknown whether deleted row %d is in table %q again: baton rows show %d shows when it was put back: "+
				"%w", k.ID, k.Table, k.ID, end)
		}
	}
}

func (s *Store) undelete(
	ctx context.Context, tx Session, fences []flush.Fence, id int64, seen *[]string,
	there string, keyArgs []any, restore string, args []any,
) (verdict, err error) {
	found := false
	err = tx.Run(ctx, Task{Query: "begin"})
	if err == nil {
		err = tx.Read(ctx, s.queries["kept_lock"], []any{id}, func(row []any) error {
			*seen, found = append(*seen, Text(row[0])), true
			return nil
		})
	}
	switch {
	case err != nil:
		return nil, err
	case !found:
		return ErrNotKept, nil
	case (*seen)[0] != (*seen)[len(*seen)-1]: // an earlier attempt has succeeded
		return nil, nil
	}
	if s.queries["kept_settings"] != "" {
		if err := tx.Run(ctx, Task{Query: "kept_settings"}); err != nil {
			return nil, err
		}
	}
	exists := func() (exists bool, err error) {
		err = tx.Read(ctx, there, keyArgs, func([]any) error { exists = true; return nil })
		return exists, err
	}
	switch exists, err := exists(); {
	case err != nil:
		return nil, err
	case exists:
		return ErrRowThere, nil
	}
	if err := tx.Read(ctx, restore, args, func([]any) error { return nil }); err != nil {
		if s.dialect.Judge(err) == Refused {
			return fmt.Errorf("%w: %s", ErrUnfit, s.dialect.Explain(err)), nil
		}
		return nil, err
	}
	switch exists, err := exists(); {
	case err != nil:
		return nil, err
	case !exists: // a trigger or a rule has skipped the insertion
		return fmt.Errorf("%w: the database accepted the row and did not store it under its key, which a trigger or a rule of the table "+
			"can cause", ErrUnfit), nil
	}
	for _, f := range fences {
		if err := s.sameFence(ctx, tx, f); err != nil {
			return nil, err
		}
	}
	if err := tx.Run(ctx, Task{Query: "kept_put_back", Args: []any{id}}); err != nil {
		return nil, err
	}
	return nil, tx.Commit(ctx)
}

// sameFence returns an error unless f is still the fence of its job. If f has no epoch, the job must have no fence of this election. A
// fence of another election protects the job of that election, which has nothing to do with the row.
func (s *Store) sameFence(ctx context.Context, tx Session, f flush.Fence) error {
	if f.Epoch > 0 {
		return s.checkFence(ctx, tx, f, "fence_check")
	}
	held, found, err := s.readFence(ctx, tx, "fence_check", f.Job)
	if err != nil || !found {
		return err
	}
	err = s.ownFence(ctx, tx, f.Job)
	switch {
	case errors.As(err, new(*OtherElectionError)):
		return nil
	case err == nil:
		err = &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
	}
	return err
}
