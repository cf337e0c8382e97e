package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// OtherElectionError means that a job of another election (nodes with another lock key) has the same name and uses the same database. If
// our job used that job's fence, ledger and positions, it would treat data of another Redis as its own.
type OtherElectionError struct{ Job, Table, Kept, LockKey, Ours string }

func (e *OtherElectionError) Error() string {
	return fmt.Sprintf("another job %q, under lock %q, writes to this database, and both jobs would use the same fence and ledger: %s",
		e.Job, e.LockKey, e.Remedy())
}

// Remedy says how both jobs can continue, or how the job continues if its lock was renamed.
func (e *OtherElectionError) Remedy() string {
	quote := func(key string) string { return "'" + strings.ReplaceAll(key, "'", "''") + "'" }
	return fmt.Sprintf("give one of the jobs another name. If the lock %q was renamed to %q, stop all nodes of the old lock, "+
		"and run once: UPDATE %[3]s SET lock_key = %[4]s WHERE lock_key = %[5]s; UPDATE %[6]s SET lock_key = %[4]s WHERE lock_key = %[5]s",
		e.LockKey, e.Ours, e.Table, quote(e.Ours), quote(e.LockKey), e.Kept)
}

// CheckElection returns an OtherElectionError if the job's fence belongs to another election. The first run of the job would return the
// same error. CheckElection creates no tables, and returns nil if baton's tables do not exist.
func (s *Store) CheckElection(ctx context.Context, job string) error {
	others, err := s.others(ctx)
	if err != nil || !others[job] {
		return err
	}
	return s.transact(ctx, "read whose fence it is", func(tx Session) error { return s.ownFence(ctx, tx, job) })
}

// ownFence returns an OtherElectionError if the job's fence belongs to another election.
func (s *Store) ownFence(ctx context.Context, tx Session, job string) error {
	key := ""
	err := tx.Read(ctx, s.queries["fence_election"], []any{job}, func(row []any) error {
		key = Text(row[0])
		return nil
	})
	if err == nil && key != "" && key != s.lockKey {
		return &OtherElectionError{Job: job, Table: s.prefix + "fence", Kept: s.prefix + "deleted", LockKey: key, Ours: s.lockKey}
	}
	return err
}

// others returns the set of names of jobs of other elections that write to this database. The letters and fences of these jobs must not be
// shown, counted or dropped by this election.
func (s *Store) others(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	if s.lockKey == "" {
		return found, nil
	}
	const doing = "look for jobs of other elections"
	if done, err := s.migratedTo(ctx, doing, "fence_election"); err != nil || !done {
		return found, err // older tables do not contain the election
	}
	err := s.look(ctx, doing, s.queries["fence_others"], []any{s.lockKey}, func(row []string) error {
		found[row[0]] = true
		return nil
	})
	return found, err
}

// migratedTo reports whether the newest migration with this name is done. It changes no table.
func (s *Store) migratedTo(ctx context.Context, doing, name string) (bool, error) {
	var version int64
	err := s.look(ctx, doing, s.queries["version"], nil, func(row []string) (err error) {
		version, err = strconv.ParseInt(row[0], 10, 64)
		return err
	})
	want, wrong := s.versionNamed(name)
	return version >= want, errors.Join(err, wrong)
}
