package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// OtherElectionError means that a job of this name has its fence, ledger and positions under another lock. To continue from them would
// treat data of another Redis as ours.
type OtherElectionError struct{ Job, Table, LockKey, Ours string }

func (e *OtherElectionError) Error() string {
	quote := func(key string) string { return "'" + strings.ReplaceAll(key, "'", "''") + "'" }
	return fmt.Sprintf("a job %q under lock %q writes to this database, too, and both would use one fence and one ledger: give one of "+
		"them another name. If %q was renamed to %q, stop its last node, and run once: UPDATE %s SET lock_key = %s WHERE lock_key = %s",
		e.Job, e.LockKey, e.LockKey, e.Ours, e.Table, quote(e.Ours), quote(e.LockKey))
}

// ownFence is an OtherElectionError if the job's fence is that of another election.
func (s *Store) ownFence(ctx context.Context, tx Session, job string) error {
	key := ""
	err := tx.Read(ctx, s.queries["fence_election"], []any{job}, func(row []any) error {
		key = Text(row[0])
		return nil
	})
	if err == nil && key != "" && key != s.lockKey {
		return &OtherElectionError{Job: job, Table: s.prefix + "fence", LockKey: key, Ours: s.lockKey}
	}
	return err
}

// others returns the names of other elections' jobs that write to this database, as a set. Their letters and fences are not ours: they
// must not be shown, counted or dropped.
func (s *Store) others(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	if s.lockKey == "" {
		return found, nil
	}
	var version int64
	const doing = "look for jobs of other elections"
	err := s.look(ctx, doing, s.queries["version"], nil, func(row []string) (err error) {
		version, err = strconv.ParseInt(row[0], 10, 64)
		return err
	})
	if want, wrong := s.newestVersion(); err != nil || wrong != nil || version < want {
		return found, errors.Join(err, wrong) // older tables do not tell elections apart
	}
	err = s.look(ctx, doing, s.queries["fence_others"], []any{s.lockKey}, func(row []string) error {
		found[row[0]] = true
		return nil
	})
	return found, err
}
