package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

const (
	defaultPageRows     = 5000
	defaultMemoryBudget = 32 << 20
)

// rowReader reads hashes. Each hash is a row.
type rowReader struct {
	redis  *redisconn.Store
	row    spec.RowKey // the zero value means that an id is the key itself
	inputs []string
	fields []string // the inputs that are fields of the hash
}

// readRows reads the rows of ids in their order, until the page is full.
func (s *rowReader) readRows(ctx context.Context, c redisconn.Conn, ids []string, p *paging.Filler) ([]row.Record, error) {
	return p.Fill(ids, func(ids []string) ([]row.Record, error) {
		records := p.Records(len(ids), len(s.inputs))
		for i, id := range ids {
			records[i].Key = id
		}
		return records, s.readBatch(ctx, c, records)
	})
}

// readBatch reads rows. In a Cluster it asks every node that has some of these rows.
func (s *rowReader) readBatch(ctx context.Context, c redisconn.Conn, records []row.Record) error {
	rows := make([]*row.Record, len(records))
	for i := range records {
		rows[i] = &records[i]
	}
	return redisconn.ByMaster(ctx, s.redis, c, rows, func(rec *row.Record) string { return s.row.Key(rec.Key) }, s.readFrom)
}

// readFrom reads rows from one server. If a row has just moved to another server, readFrom reads the row there.
func (s *rowReader) readFrom(ctx context.Context, c redisconn.Conn, records []*row.Record) error {
	blank, gone, err := s.readFields(ctx, c, records)
	if err != nil {
		return err
	}
	alsoGone, err := s.settle(ctx, c, blank)
	if err != nil {
		return err
	}
	for _, rec := range append(gone, alsoGone...) {
		if err := s.readAfter(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// readFields fills the records. The result blank has the records whose rows seem to have no field. The result elsewhere has the records
// whose rows are on another node of the Cluster.
func (s *rowReader) readFields(ctx context.Context, c redisconn.Conn, records []*row.Record) (blank, elsewhere []*row.Record, err error) {
	if len(s.fields) == 0 { // the inputs are only ids
		for _, rec := range records {
			s.fill(rec, nil)
		}
		return records, nil, nil
	}
	err = c.Ask(ctx, &redisconn.Question{
		Commands: len(records),
		Write:    s.writer(records),
		Read: func(t *redisconn.Answers) (err error) {
			blank, elsewhere, err = s.takeTexts(t, records)
			return err
		},
	})
	return blank, elsewhere, err
}

// writer returns a function that appends to buf the command that reads the fields of the i-th record.
func (s *rowReader) writer(records []*row.Record) func(buf []byte, i int) []byte {
	var fields []byte
	for _, f := range s.fields {
		fields = redisconn.AppendWord(fields, f)
	}
	return func(buf []byte, i int) []byte {
		buf = redisconn.AppendCommand(buf, 2+len(s.fields), "HMGET")
		buf = redisconn.AppendWord(buf, s.row.Key(records[i].Key))
		return append(buf, fields...)
	}
}

// takeTexts fills the records from the replies to readFields' question. The texts of all records share one allocation.
func (s *rowReader) takeTexts(t *redisconn.Answers, records []*row.Record) (blank, elsewhere []*row.Record, err error) {
	all, sizes := t.Take(), t.Sizes
	for i, rec := range records {
		r := t.Replies[i]
		found := false
		switch {
		case r.Refusal != "" && redisconn.IsElsewhere(r.Refusal):
			elsewhere = append(elsewhere, rec)
			continue
		case r.Refusal != "":
			if _, err := s.decode(rec, r.Refusal); err != nil {
				return nil, nil, err
			}
		default:
			found, all = s.fillTexts(rec, all, sizes[:r.Sizes])
			sizes = sizes[r.Sizes:]
		}
		if !found {
			blank = append(blank, rec)
		}
	}
	return blank, elsewhere, nil
}

// fillTexts sets the inputs of rec from the first of the texts, and returns the remaining texts. The result found is false if Redis has
// none of the fields.
func (s *rowReader) fillTexts(rec *row.Record, texts string, sizes []int) (found bool, left string) {
	next := 0
	for i, input := range s.inputs {
		switch {
		case input == s.row.Name:
			rec.Inputs[i] = row.Raw{Text: rec.Key, OK: true}
			continue
		case next < len(sizes) && sizes[next] >= 0:
			rec.Inputs[i] = row.Raw{Text: texts[:sizes[next]], OK: true}
			texts = texts[sizes[next]:]
			found = true
		default:
			rec.Inputs[i] = row.Raw{}
		}
		next++
	}
	return found, texts
}

// settle finds out, for records without any field, whether the row is gone or exists without these fields. It asks for existence and
// fields in one transaction for each row. Otherwise a row that is created or deleted in between could look like a row without fields. The
// method settle returns the records whose rows are on another node of the Cluster.
func (s *rowReader) settle(ctx context.Context, c redisconn.Conn, blank []*row.Record) (elsewhere []*row.Record, err error) {
	if len(blank) == 0 {
		return nil, nil
	}
	stride := 3 // the number of replies for one record: to MULTI, to the queued EXISTS, and to EXEC
	if len(s.fields) > 0 {
		stride = 4 // one more, to the queued HMGET
	}
	for _, rec := range blank {
		commands := []redisconn.Command{redisconn.Cmd("MULTI"), redisconn.Cmd("EXISTS", s.row.Key(rec.Key))}
		if len(s.fields) > 0 {
			commands = append(commands, redisconn.Cmd("HMGET", s.hmget(rec.Key)...))
		}
		if err := redisconn.SendAll(c, append(commands, redisconn.Cmd("EXEC"))...); err != nil {
			return nil, err
		}
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return nil, err
	}
	for i, rec := range blank {
		own := replies[i*stride : (i+1)*stride]
		// Redis refuses a key that is on another node when a command of the transaction is queued. Valkey 9 refuses it when the transaction
		// is executed.
		if slices.ContainsFunc(own, redisconn.IsElsewhere) {
			elsewhere = append(elsewhere, rec)
			continue
		}
		results, err := redis.Values(own[stride-1], nil)
		if err != nil {
			return nil, err
		}
		if err := s.verdict(rec, results[0], results[1:]); err != nil {
			return nil, err
		}
	}
	return elsewhere, nil
}

// verdict fills the record from the replies to EXISTS and, if there is one, to HMGET.
func (s *rowReader) verdict(rec *row.Record, exists any, values []any) error {
	n, err := redis.Int(exists, nil)
	if err != nil {
		return err
	}
	rec.Gone = n == 0
	if len(values) > 0 {
		_, err = s.decode(rec, values[0])
	}
	return err
}

var rowScript = loadScript("row_read", 1)

// readAfter reads a row whose slot is being moved between two nodes of a Cluster.
func (s *rowReader) readAfter(ctx context.Context, rec *row.Record) error {
	args := s.hmget(rec.Key)
	reply, err := s.redis.Run(ctx, s.row.Key(rec.Key), func(c redis.Conn) (any, error) {
		return rowScript.DoContext(ctx, c, args...)
	})
	if refusal, ok := errors.AsType[redis.Error](err); ok && redisconn.Code(refusal) == "WRONGTYPE" {
		_, err = s.decode(rec, redis.Error("WRONGTYPE"))
		return err
	}
	results, err := redis.Values(reply, err)
	if err != nil {
		return err
	}
	return s.verdict(rec, results[0], results[1:])
}

func (s *rowReader) hmget(id string) []any {
	args := make([]any, 0, 1+len(s.fields))
	args = append(args, s.row.Key(id))
	for _, f := range s.fields {
		args = append(args, f)
	}
	return args
}

// decode reads the reply of an HMGET into rec. If the reply is the error WRONGTYPE, only this record fails. After any other error the whole
// batch fails.
func (s *rowReader) decode(rec *row.Record, reply any) (found bool, err error) {
	if e, ok := reply.(redis.Error); ok && strings.HasPrefix(string(e), "WRONGTYPE") {
		s.fill(rec, nil)
		rec.Err = fmt.Errorf("%w: %q is not a hash, so it is no row", staging.ErrWrongType, s.row.Key(rec.Key))
		return false, nil
	}
	values, err := redis.Values(reply, nil)
	if err != nil {
		return false, err
	}
	return s.fill(rec, values), nil
}

// fill sets the inputs of rec from the values of the hash's fields. The value of a missing field is nil. The texts of a row share one
// allocation.
func (s *rowReader) fill(rec *row.Record, values []any) (found bool) {
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
			rec.Inputs[i] = row.Raw{Text: rec.Key, OK: true}
			continue
		}
		rec.Inputs[i] = row.Raw{}
		if next < len(values) {
			if text, ok := values[next].([]byte); ok {
				rec.Inputs[i] = row.Raw{Text: texts[:len(text)], OK: true}
				texts = texts[len(text):]
				found = true
			}
		}
		next++
	}
	return found
}
