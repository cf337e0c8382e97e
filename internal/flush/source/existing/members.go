package existing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
)

const (
	membersAtOnce = 1000
	memberBytes   = 1 << 20
)

// members reads the members of the sorted set of a job. It implements verify.Source with the members as keys.
type members struct {
	*source.Zset
	store  *redisconn.Store
	key    string // the sorted set
	inputs []string
	newID  func() (string, error)
}

var _ verify.Source = (*members)(nil)

func openMembers(store *redisconn.Store, o source.Options, inputs []string, newID func() (string, error)) (verify.Source, error) {
	zset, err := source.NewZset(store, source.IndexedOptions{
		Job: o.Job, Key: o.Key, Changed: o.Changed, Inputs: inputs, BatchBytes: o.Bytes,
	})
	if err != nil {
		return nil, err
	}
	return &members{zset, store, o.Key, inputs, newID}, nil
}

// Name implements verify.Source.
func (m *members) Name() string { return m.key }

// Keys implements verify.Source.
func (m *members) Keys(ctx context.Context, text string) (some verify.KeyPage, err error) {
	p := scanPosition{Cursor: "0"}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return some, fmt.Errorf("the position %.80q in the members of %q cannot be read: %w", text, m.key, err)
		}
	}
	before := p.Run
	if some.Keys, err = m.scan(ctx, &p); err != nil {
		return some, fmt.Errorf("scan %q: %w", m.key, redisconn.Explain(err))
	}
	some.Again = before != "" && before != p.Run
	if some.Part = fraction(p.Cursor); p.Cursor == "0" {
		return some, nil
	}
	encoded, err := json.Marshal(p)
	some.Next = string(encoded)
	return some, err
}

// scan reads the next members at the server that returned the cursor. If the server's process has changed, the new process has the members
// in another order, so scan begins again with the first member.
func (m *members) scan(ctx context.Context, p *scanPosition) (found []string, err error) {
	routed, err := m.store.Conn(ctx, m.key)
	if err != nil {
		return nil, err
	}
	defer routed.Close() // returns it to the pool
	c := redisconn.Unrouted(routed)
	info, err := redis.String(redis.DoContext(c, ctx, "INFO", "server"))
	if err != nil {
		return nil, err
	}
	if run := runOf(info); run != p.Run {
		p.Run, p.Cursor = run, "0"
	}
	element, size := 0, 0
	enough := func() bool { return len(found) >= membersAtOnce || size >= memberBytes }
	next, err := c.ScanKey(ctx, "ZSCAN", m.key, p.Cursor, redisconn.NewScanPace(), enough, func(text []byte) {
		if element++; element%2 == 1 { // a score follows each member
			found, size = append(found, string(text)), size+len(text)
		}
	})
	switch refusal, _ := errors.AsType[redis.Error](err); {
	case err == nil:
		p.Cursor = next
	case redisconn.Code(refusal) == "WRONGTYPE":
		// ReadMembers also fails, and its error says what to do.
		return nil, m.ReadMembers(ctx, []string{""}, func([]row.Record) error { return err })
	case redisconn.IsElsewhere(refusal):
		_, _ = redis.DoContext(routed, ctx, "EXISTS", m.key) // follows the key to its server, so that the next attempt finds it
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// Read implements verify.Source.
func (m *members) Read(ctx context.Context, keys []string, yield func([]row.Record) error) error {
	return m.ReadMembers(ctx, keys, yield)
}

// Named implements verify.Source.
func (m *members) Named(member string) row.Record {
	r := row.Record{Key: member, Inputs: make([]row.Raw, len(m.inputs))}
	if at := slices.Index(m.inputs, row.InputMember); at >= 0 {
		r.Inputs[at] = row.Raw{Text: member, OK: true}
	}
	return r
}

// KeyOf implements verify.Source.
func (m *members) KeyOf(r *row.Record) string {
	return r.Inputs[slices.Index(m.inputs, row.InputMember)].Text // Finds has checked that it exists
}

// Finds implements verify.Source.
func (m *members) Finds(inputs []string) error {
	if !slices.Contains(inputs, row.InputMember) {
		return fmt.Errorf("each member of %q is a row: add %s to `key`", m.key, row.InputMember)
	}
	return nil
}

// StillMissing implements verify.Source.
func (m *members) StillMissing(ctx context.Context, records []row.Record) (missing []row.Record, err error) {
	names := make([]string, len(records))
	for i := range records {
		names[i] = m.KeyOf(&records[i])
		records[i].Key = names[i]
	}
	at := 0
	err = m.ReadMembers(ctx, names, func(found []row.Record) error {
		for i := range found {
			if found[i].Gone {
				missing = append(missing, records[at+i])
			}
		}
		at += len(found)
		return nil
	})
	return missing, err
}

// Mark implements verify.Source.
func (m *members) Mark(ctx context.Context, keys []string) error {
	id, err := m.newID()
	if err != nil {
		return err
	}
	return m.Zset.Mark(ctx, id, keys)
}
