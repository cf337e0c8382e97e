package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// pipelineDepth is how many rows at most are asked for before the replies are read. Twice
// as many gains next to nothing, and costs memory in Redis and here.
const pipelineDepth = 1000

// unknownRow is what a row is taken for, in bytes, before one has been seen.
const unknownRow = 32 << 10

// pace bounds the bytes of a page and of the replies that are under way: rows may be
// of any size.
type pace struct {
	page, replies int // bytes
	depth         int // rows to ask for at once
}

func newPace(budget int) pace {
	p := pace{page: budget / 4, replies: budget / 16}
	p.learn(1, unknownRow)
	return p
}

// learn adapts the depth to rows that were read.
func (p *pace) learn(rows, bytes int) {
	p.depth = min(max(1, p.replies*rows/max(1, bytes)), pipelineDepth)
}

// readRows reads the rows of ids in their order, until the page is full.
func (s *Hashes) readRows(ctx context.Context, c redis.Conn, ids []string, p *pace) ([]flush.Record, error) {
	n := len(s.inputs)
	records := make([]flush.Record, len(ids))
	raws := make([]flush.Raw, len(ids)*n)
	for i, id := range ids {
		records[i] = flush.Record{Key: id, Inputs: raws[i*n : (i+1)*n : (i+1)*n]}
	}
	done := 0
	for size := 0; done < len(records) && size < p.page; {
		next := records[done:min(done+p.depth, len(records))]
		blank, err := s.readFields(ctx, c, next)
		if err != nil {
			return nil, err
		}
		if err := s.settle(ctx, c, blank); err != nil {
			return nil, err
		}
		bytes := 0
		for i := range next {
			for _, raw := range next[i].Inputs {
				bytes += len(raw.Text)
			}
		}
		p.learn(len(next), bytes)
		size += bytes
		done += len(next)
	}
	return records[:done], nil
}

// readFields fills the records in and returns those of which no field was read.
func (s *Hashes) readFields(ctx context.Context, c redis.Conn, records []flush.Record) ([]*flush.Record, error) {
	var blank []*flush.Record
	if len(s.fields) == 0 { // only the ids are wanted
		for i := range records {
			s.fill(&records[i], nil)
			blank = append(blank, &records[i])
		}
		return blank, nil
	}
	args := s.hmget("")
	for i := range records {
		args[0] = s.row.Key(records[i].Key)
		if err := c.Send("HMGET", args...); err != nil {
			return nil, err
		}
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range records {
		found, err := s.decode(&records[i], replies[i])
		if err != nil {
			return nil, err
		}
		if !found {
			blank = append(blank, &records[i])
		}
	}
	return blank, nil
}

// settle decides for records without any field whether their row is gone, or has
// none of the fields. Both questions are put in one transaction for each row: a
// row that is created or deleted in between must not look like an empty one.
func (s *Hashes) settle(ctx context.Context, c redis.Conn, blank []*flush.Record) error {
	if len(blank) == 0 {
		return nil
	}
	stride := 3 // replies for one record: of MULTI, the queued EXISTS, EXEC
	if len(s.fields) > 0 {
		stride = 4 // and the queued HMGET
	}
	for _, rec := range blank {
		commands := []command{{"MULTI", nil}, {"EXISTS", []any{s.row.Key(rec.Key)}}}
		if len(s.fields) > 0 {
			commands = append(commands, command{"HMGET", s.hmget(rec.Key)})
		}
		if err := sendAll(c, append(commands, command{"EXEC", nil})...); err != nil {
			return err
		}
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return err
	}
	for i, rec := range blank {
		results, err := redis.Values(replies[i*stride+stride-1], nil)
		if err != nil {
			return err
		}
		exists, err := redis.Int(results[0], nil)
		if err != nil {
			return err
		}
		rec.Gone = exists == 0
		if len(results) > 1 {
			if _, err := s.decode(rec, results[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Hashes) hmget(id string) []any {
	args := make([]any, 0, 1+len(s.fields))
	args = append(args, s.row.Key(id))
	for _, f := range s.fields {
		args = append(args, f)
	}
	return args
}

// decode reads the reply of an HMGET into rec. That the key holds another type is
// the record's own misfortune; any other error is everybody's.
func (s *Hashes) decode(rec *flush.Record, reply any) (found bool, err error) {
	if e, ok := reply.(redis.Error); ok && strings.HasPrefix(string(e), "WRONGTYPE") {
		s.fill(rec, nil)
		rec.Err = fmt.Errorf("%w: %q is not a hash, so it is no row", ErrWrongType, s.row.Key(rec.Key))
		return false, nil
	}
	values, err := redis.Values(reply, nil)
	if err != nil {
		return false, err
	}
	return s.fill(rec, values), nil
}

// fill sets the inputs of rec from the values of the hash's fields, of which one
// that is missing is nil. The texts of a row share one allocation.
func (s *Hashes) fill(rec *flush.Record, values []any) (found bool) {
	size := 0
	for _, v := range values {
		text, _ := v.([]byte)
		size += len(text)
	}
	var all strings.Builder
	all.Grow(size)
	for _, v := range values {
		text, _ := v.([]byte)
		all.Write(text)
	}
	texts, next := all.String(), 0
	for i, input := range s.inputs {
		if input == s.row.Name {
			rec.Inputs[i] = flush.Raw{Text: rec.Key, OK: true}
			continue
		}
		rec.Inputs[i] = flush.Raw{}
		if next < len(values) {
			if text, ok := values[next].([]byte); ok {
				rec.Inputs[i] = flush.Raw{Text: texts[:len(text)], OK: true}
				texts = texts[len(text):]
				found = true
			}
		}
		next++
	}
	return found
}
