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

// Finds implements flush.Sweeper: the key of a row follows from all captures of the pattern, or from $key; a row of a set needs its
// member, too.
func (s *Scan) Finds(inputs []string) error {
	if !slices.Contains(inputs, row.InputKey) {
		for _, name := range s.pattern.Names {
			if !slices.Contains(inputs, name) {
				return fmt.Errorf("without <%s> of %q the key in Redis is unknown: add it to `key`, or %s", name, s.pattern, row.InputKey)
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
		return current.generation, errors.New("it did not come to its end")
	}
	return current.generation, current.missed
}

// StillMissing implements flush.Sweeper. It asks for the keys as the rows spell them: where a column writes another text than the key has
// ("007", a UUID in capitals), it does not find a key that came back in the last moment, and its row is deleted until the next pass.
func (s *Scan) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	return s.Missing(ctx, nil, records)
}

// Missing is StillMissing at the server of a connection; nil means wherever the keys are.
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

// recheck makes the command that checks a record, and fills its Key in.
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

// isMissing reads the answer to a recheck. A key of another type counts as missing.
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
