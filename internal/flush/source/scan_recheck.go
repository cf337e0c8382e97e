package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/redisconn"
)

var _ flush.Sweeper = (*Scan)(nil)

// Finds implements flush.Sweeper. The inputs must give the key of a row: they need all captures of the key pattern, or $key. If each member
// of a set is a row, they also need $member.
func (s *Scan) Finds(inputs []string) error {
	if !slices.Contains(inputs, row.InputKey) {
		for _, name := range s.pattern.Names {
			if !slices.Contains(inputs, name) {
				return fmt.Errorf("without <%s> of %q the key in Redis is unknown: add <%[1]s> or %[3]s "+
					"to `key`", name, s.pattern, row.InputKey)
			}
		}
	}
	if s.HasMembers() && !slices.Contains(inputs, row.InputMember) {
		return fmt.Errorf("each member of a %s is a row: add %s to `key`", s.value, row.InputMember)
	}
	return nil
}

// Pass implements flush.Sweeper.
func (s *Scan) Pass(st flush.Stage) (generation int64, missed error) {
	current, err := s.current(st)
	switch {
	case err != nil:
		return 0, err
	case !current.ended:
		return current.generation, errors.New("the pass did not reach its end")
	}
	return current.generation, current.missed
}

// StillMissing implements flush.Sweeper. It searches for the keys as the rows spell them. If a column stores another text than the key
// contains ("007", a UUID in capitals), StillMissing does not find a key that was created again just before the search. In that case the
// row is missing until the next pass.
func (s *Scan) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	return s.Missing(ctx, nil, records)
}

// Missing works like StillMissing, but asks only the server of the connection c. If c is nil, it asks the servers that hold the keys.
func (s *Scan) Missing(ctx context.Context, c redisconn.Conn, records []row.Record) ([]row.Record, error) {
	var missing []row.Record
	for some := range slices.Chunk(records, paging.Depth) {
		commands := make([]redisconn.Command, len(some))
		for i := range some {
			commands[i] = s.recheck(&some[i])
		}
		replies, err := s.ask(ctx, c, commands)
		if err != nil {
			return nil, s.fail("look again for keys of", err)
		}
		for i := range some {
			if s.isMissing(replies[i]) {
				missing = append(missing, some[i])
			}
		}
	}
	return missing, nil
}

// recheck returns the command that asks Redis whether a record still exists. It sets the record's Key.
func (s *Scan) recheck(r *row.Record) redisconn.Command {
	captures := make([]string, len(s.pattern.Names))
	member := ""
	for i, slot := range s.slots {
		switch slot.from {
		case slotCapture:
			captures[slot.index] = r.Inputs[i].Text
		case slotKey:
			if r.Inputs[i].OK {
				r.Key = r.Inputs[i].Text
			}
		case slotValue:
			member = r.Inputs[i].Text
		}
	}
	if r.Key == "" {
		r.Key = s.pattern.Key(captures)
	}
	switch {
	case s.value == "set" && s.HasMembers():
		return redisconn.Cmd("SISMEMBER", r.Key, member)
	case s.value == "zset" && s.HasMembers():
		return redisconn.Cmd("ZSCORE", r.Key, member)
	}
	return redisconn.Cmd("TYPE", r.Key)
}

// isMissing reports whether the reply to a recheck means that the record is missing. A key whose type is not the type that the scan reads
// counts as missing.
func (s *Scan) isMissing(reply any) bool {
	switch reply := reply.(type) {
	case int64: // SISMEMBER
		return reply == 0
	case string: // TYPE
		return reply != scanTypes[s.value]
	case redis.Error: // WRONGTYPE
		return true
	}
	return reply == nil // ZSCORE
}
