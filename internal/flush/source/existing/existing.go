// Package existing reads the present values of a job's keys, beside its flush: to mark it for the flush, and to
// compare it with the table.
package existing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
)

// ErrNone says that a kind of source has nothing that could be read beside its flush.
var ErrNone = errors.New("cannot be read beside its flush")

// Check says why a job of such a source has no keys to mark or to compare; nil: it has.
func Check(kind spec.Kind) error {
	switch {
	case kind.Delivers == spec.States:
		return nil
	case kind.Watermark:
		return fmt.Errorf("counters with mode: watermark %w: every run reads all totals, and adds to a row what its total has "+
			"grown by; the row also has its value of before the job began, which Redis does not know", ErrNone)
	case kind.Delivers == spec.Increments:
		return fmt.Errorf("a source of type %s %w: flushed items have left Redis, and the rest is in no row",
			kind.Type, ErrNone)
	}
	return fmt.Errorf("a source of type %s %w: its entries leave Redis when they are flushed, or stand for what happened "+
		"and not for what is", kind.Type, ErrNone)
}

// marker is a flush.Source that can read some rows again.
type marker interface {
	Mark(ctx context.Context, newID string, ids []string) error
}

// Keys are the keys of a job: a verify.Source.
type Keys struct {
	*source.Scan
	store   *redisconn.Store
	pattern spec.KeyPattern
	redis   string // Redis' type of the keys
	inputs  []string
	captive bool   // it is marked by the captured part of its name, not by its key
	marker  marker // nil: every run reads everything
	newID   func() (string, error)
}

var _ verify.Source = (*Keys)(nil)

// Open makes the keys of a job that o describes, delivering these inputs. marks is the flush's own source.
func Open(
	store *redisconn.Store, o source.Options, inputs []string, marks flush.Source, newID func() (string, error),
) (verify.Source, error) {
	kind, ok := spec.Find(o.Type, o.Key, o.Watermark)
	if !ok {
		return nil, fmt.Errorf("no source is of type %q", o.Type)
	}
	if err := Check(kind); err != nil {
		return nil, err
	}
	if kind.Key == spec.KeyOfAll {
		return openMembers(store, o, inputs, newID)
	}
	if kind.Type == spec.Hashes {
		o.Value = "hash"
	}
	pattern, err := spec.ParseKeyPattern(o.Key)
	if err != nil {
		return nil, err
	}
	scan, err := source.NewScan(store, source.ScanOptions{Job: o.Job, Key: o.Key, Value: o.Value, Inputs: inputs, BatchBytes: o.Bytes})
	if err != nil {
		return nil, err
	}
	k := &Keys{
		Scan: scan, store: store, pattern: pattern, redis: typeOf(o.Value), inputs: inputs, captive: kind.Type == spec.Hashes, newID: newID,
	}
	k.marker, _ = marks.(marker)
	return k, nil
}

// typeOf is Redis' type of keys with such values.
func typeOf(value string) string {
	switch value {
	case "":
		return "hash"
	case "json":
		return "string"
	}
	return value
}

// scanned is how many keys one SCAN looks at.
const scanned = 1000

// place is how far all servers are read.
type place struct {
	Done   []string `json:"done,omitempty"` // addresses of those that are read
	At     string   `json:"at,omitzero"`    // the one that is being read
	Run    string   `json:"run,omitzero"`   // its run id: another process has other cursors
	Cursor string   `json:"cursor,omitzero"`
	Slots  string   `json:"slots,omitzero"` // which the servers of a Cluster had when it began
}

// Keys implements verify.Source.
func (k *Keys) Keys(ctx context.Context, text string) (some verify.Some, err error) {
	var p place
	if text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return some, fmt.Errorf("the place %.80q among the keys of %q cannot be read: %w", text, k.Name(), err)
		}
	}
	masters, err := k.store.Masters(ctx)
	if err != nil {
		return some, k.fail("scan", err)
	}
	if text == "" {
		if p.Slots, err = k.slots(ctx, masters); err != nil {
			return some, k.fail("scan", err)
		}
	}
	at, read := k.turn(masters, &p)
	if at != nil {
		if some, err = k.scan(ctx, at, &p); err != nil {
			return some, k.fail("scan", err)
		}
		some.Part = (float64(read) + fraction(p.Cursor)) / float64(len(masters))
		if p.Cursor == "0" {
			p = place{Done: append(p.Done, p.At), Slots: p.Slots}
			at, _ = k.turn(masters, &p)
		}
	}
	if at == nil {
		some.Part, some.Missed = 1, k.missed(ctx, masters, p.Slots)
		return some, nil
	}
	encoded, err := json.Marshal(p)
	some.Next = string(encoded)
	return some, err
}

// turn is the server that is to be read next, and how many are done; nil if all are.
func (k *Keys) turn(masters []*redisconn.Server, p *place) (at *redisconn.Server, done int) {
	masters = slices.SortedFunc(slices.Values(masters), func(a, b *redisconn.Server) int {
		return strings.Compare(a.Address(), b.Address())
	})
	var first *redisconn.Server
	for _, m := range masters {
		switch {
		case slices.Contains(p.Done, m.Address()):
			done++
		case m.Address() == p.At:
			at = m
		case first == nil:
			first = m
		}
	}
	if at != nil || first == nil {
		return at, done
	}
	p.At, p.Run, p.Cursor = first.Address(), "", "0"
	return first, done
}

// scan reads the next keys of a server.
func (k *Keys) scan(ctx context.Context, at *redisconn.Server, p *place) (some verify.Some, err error) {
	c, err := at.Borrow(ctx)
	if err != nil {
		return some, err
	}
	defer c.Close() // it goes back to the pool
	held, err := k.checkRun(ctx, c, p)
	if err != nil {
		return some, err
	}
	before := 0.0
	if p.Cursor != "0" {
		before = fraction(p.Cursor)
	}
	args := []any{p.Cursor, "MATCH", redisconn.Glob(k.pattern.Literals()...), "COUNT", scanned, "TYPE", k.redis}
	reply, err := redis.Values(redis.DoContext(c, ctx, "SCAN", args...))
	if refusal, ok := errors.AsType[redis.Error](err); ok && refusal == "ERR syntax error" { // older than Redis 6
		reply, err = redis.Values(redis.DoContext(c, ctx, "SCAN", args[:len(args)-2]...))
	}
	if err != nil {
		return some, err
	}
	var found []string
	if _, err := redis.Scan(reply, &p.Cursor, &found); err != nil {
		return some, err
	}
	found = slices.DeleteFunc(found, func(key string) bool { return !k.Matches(key) })
	slices.Sort(found)
	some.Keys = slices.Compact(found)
	some.Looked = int(math.Ceil(max(0, fraction(p.Cursor)-before) * float64(held)))
	return some, nil
}

// slots lists the slots of each master of a Cluster; "" of another deployment, and while one is on
// its way.
func (k *Keys) slots(ctx context.Context, masters []*redisconn.Server) (string, error) {
	if !k.store.IsCluster() {
		return "", nil
	}
	var all []string
	for _, m := range masters {
		c, err := m.Borrow(ctx)
		if err != nil {
			return "", err
		}
		text, err := redis.String(redis.DoContext(c, ctx, "CLUSTER", "NODES"))
		_ = c.Close() // it goes back to the pool
		if err != nil {
			return "", err
		}
		own, moving := redisconn.OwnSlots(text)
		if moving {
			return "", nil
		}
		if words := strings.SplitN(own, " ", 3); len(words) == 3 { // not the node and its epoch: a failover changes those
			all = append(all, words[2])
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; "), nil
}

// missed says why keys may have been read at no master: those that moved from one that was not read yet to one that
// was.
func (k *Keys) missed(ctx context.Context, masters []*redisconn.Server, before string) error {
	now, err := k.slots(ctx, masters)
	switch {
	case err != nil:
		return err
	case k.store.IsCluster() && (now == "" || now != before):
		return errors.New("slots of the cluster moved meanwhile")
	}
	return nil
}

// checkRun makes a server that is another process than before be read from the beginning. It returns how many keys
// the server has.
func (k *Keys) checkRun(ctx context.Context, c redis.Conn, p *place) (held int64, err error) {
	var infos [2]string
	for i, section := range []string{"server", "keyspace"} {
		if infos[i], err = redis.String(redis.DoContext(c, ctx, "INFO", section)); err != nil {
			return 0, err
		}
	}
	if run := runOf(infos[0]); p.Run != run {
		p.Run, p.Cursor = run, "0"
	}
	if _, number, ok := strings.Cut(infos[1], fmt.Sprintf("\ndb%d:keys=", k.store.Database())); ok { // else it has none
		number, _, _ = strings.Cut(number, ",")
		held, err = strconv.ParseInt(number, 10, 64)
	}
	return held, err
}

// runOf is the run id of a server, as INFO has it.
func runOf(info string) string {
	_, run, _ := strings.Cut(info, "run_id:")
	run, _, _ = strings.Cut(run, "\r\n")
	return run
}

// fraction is which part of a server's keys lies before a cursor: Redis counts it up from its highest bit.
func fraction(cursor string) float64 {
	n, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return 0
	}
	if n == 0 {
		return 1 // the end: nothing asks before the first reply
	}
	return float64(bits.Reverse64(n)) / (1 << 63) / 2
}

// Read implements verify.Source.
func (k *Keys) Read(ctx context.Context, keys []string, yield func([]row.Record) error) error {
	if len(keys) == 0 {
		return nil
	}
	c, err := k.store.Conn(ctx, keys[0])
	if err != nil {
		return k.fail("read keys of", err)
	}
	defer c.Close() // it goes back to the pool
	return k.ReadKeys(ctx, c, keys, func(p flush.Page) error { return yield(p.Records) })
}

// KeyOf implements verify.Source.
func (k *Keys) KeyOf(r *row.Record) string {
	captures := make([]string, len(k.pattern.Names))
	for i, input := range k.inputs {
		if input == row.InputKey && r.Inputs[i].OK {
			return r.Inputs[i].Text
		}
		if at := slices.Index(k.pattern.Names, input); at >= 0 {
			captures[at] = r.Inputs[i].Text
		}
	}
	return k.pattern.Key(captures)
}

// Mark implements verify.Source.
func (k *Keys) Mark(ctx context.Context, keys []string) error {
	if k.marker == nil {
		return verify.ErrNoMarks
	}
	id, err := k.newID()
	if err != nil {
		return err
	}
	if k.captive {
		ids := make([]string, 0, len(keys))
		for _, key := range keys {
			if captures, ok := k.pattern.Match(key, nil); ok {
				ids = append(ids, captures[0])
			}
		}
		keys = ids
	}
	return k.marker.Mark(ctx, id, keys)
}

// fail adds the action and the key to an error.
func (k *Keys) fail(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s %q: %w", doing, k.Name(), redisconn.Explain(err))
}
