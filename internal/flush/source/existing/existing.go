// Package existing reads the present values of a job's keys, independently of the job's flush. Package verify uses it to compare the keys
// with the rows of the table, and to mark keys so that the flush writes their rows again.
//
//	Check         returns an error for a kind of source that has no such keys; only sources that deliver states have them
//	Open          returns the keys of a job as a verify.Source, which is a Keys or a members
//	Keys          reads the keys of a pattern by SCAN, one master after the other
//	members       reads the members of one sorted set by ZSCAN, and treats each member as a key
//	scanPosition  how far the servers were read; its JSON is the Next of a verify.KeyPage
//
// Another process can continue from a scanPosition. To mark a key, the package calls Mark of the flush's source, which adds an id to the
// index of changes, or publishes the key in the replication stream. A source that reads everything in each run has no Mark, so Mark here
// returns verify.ErrNoMarks.
//
// What fails, and what then:
//
//   - A server is restarted, or another server gets its address or its keys: a cursor is valid only in the process that returned it, so
//     the keys of this server are read again from the beginning. The page says so in Again, because the caller may get a key twice.
//   - Slots of a Cluster move between masters: a key may have been read at no master. The last page contains the reason in Missed, and the
//     caller decides whether to read all keys again.
//   - A key is removed after its name was read: its record is Gone, or the key has no record if each of its members is a row.
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

// ErrNone means that a kind of source has no keys that can be read independently of its flush.
var ErrNone = errors.New("cannot be verified or backfilled")

// Check returns the reason why a job with such a source has no keys to mark or to compare. It returns nil if the job has such keys.
func Check(kind spec.Kind) error {
	switch {
	case kind.Delivers == spec.States:
		return nil
	case kind.Watermark:
		return fmt.Errorf("counters with mode: watermark %w: every run adds the growth of a total in Redis to its row, "+
			"and the row may also contain a value from before the job began, which is not in Redis", ErrNone)
	case kind.Delivers == spec.Increments:
		return fmt.Errorf("a source of type %s %w: flushed items are no longer in Redis, and the other items are not in the table yet",
			kind.Type, ErrNone)
	}
	return fmt.Errorf("a source of type %s %w: baton removes its entries from Redis when it flushes them, or they describe events "+
		"and not the present state", kind.Type, ErrNone)
}

// marker is a flush.Source that can mark rows, so that the next run of the flush reads them again.
type marker interface {
	Mark(ctx context.Context, newID string, ids []string) error
}

// Keys reads the keys of a job. It is a verify.Source.
type Keys struct {
	*source.Scan
	store   *redisconn.Store
	pattern spec.KeyPattern
	redis   string // Redis' type of the keys
	inputs  []string
	captive bool   // the flush's source marks a key by the captured part of the key's name, and not by the whole name
	marker  marker // nil if every run of the flush reads everything
	newID   func() (string, error)
}

var _ verify.Source = (*Keys)(nil)

// Open returns the keys of the job that the options describe. Their records have the given inputs. The argument marks is the source of the
// flush, which marks keys if it can.
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

// typeOf returns the Redis type of the keys of a job whose setting "value" has this value.
func typeOf(value string) string {
	switch value {
	case "":
		return "hash"
	case "json":
		return "string"
	}
	return value
}

// scanned is the number of keys that one call of SCAN looks at.
const scanned = 1000

// scanPosition describes how far the servers have been read.
type scanPosition struct {
	Done   []string `json:"done,omitempty"` // the addresses of the servers that are read completely
	At     string   `json:"at,omitzero"`    // the address of the server that is being read
	Run    string   `json:"run,omitzero"`   // the run id of that server, because a cursor is valid only in the process that returned it
	Cursor string   `json:"cursor,omitzero"`
	Slots  string   `json:"slots,omitzero"` // the slots of a Cluster's servers at the beginning
}

// Keys implements verify.Source.
func (k *Keys) Keys(ctx context.Context, text string) (some verify.KeyPage, err error) {
	var p scanPosition
	if text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return some, fmt.Errorf("the position %.80q in the keys of %q cannot be read: %w", text, k.Name(), err)
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
	again := replaced(masters, p)
	at, read := k.turn(masters, &p)
	if at != nil {
		run := p.Run
		if some, err = k.scan(ctx, at, &p); err != nil {
			return some, k.fail("scan", err)
		}
		again = again || run != "" && run != p.Run
		some.Part = (float64(read) + fraction(p.Cursor)) / float64(len(masters))
		if p.Cursor == "0" {
			p = scanPosition{Done: append(p.Done, p.At), Slots: p.Slots}
			at, _ = k.turn(masters, &p)
		}
	}
	if some.Again = again; at == nil {
		some.Part, some.Missed = 1, k.missed(ctx, masters, p.Slots)
		return some, nil
	}
	encoded, err := json.Marshal(p)
	some.Next = string(encoded)
	return some, err
}

// replaced reports whether a server whose keys were read is not a master anymore, so that another server has its keys.
func replaced(masters []*redisconn.Server, p scanPosition) bool {
	read := p.Done
	if p.Run != "" {
		read = append(slices.Clip(read), p.At)
	}
	return slices.ContainsFunc(read, func(address string) bool {
		return !slices.ContainsFunc(masters, func(m *redisconn.Server) bool { return m.Address() == address })
	})
}

// turn returns the server to read next, and the number of servers that are read completely. The server is nil if all servers are read
// completely.
func (k *Keys) turn(masters []*redisconn.Server, p *scanPosition) (at *redisconn.Server, done int) {
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
func (k *Keys) scan(ctx context.Context, at *redisconn.Server, p *scanPosition) (some verify.KeyPage, err error) {
	c, err := at.Borrow(ctx)
	if err != nil {
		return some, err
	}
	defer c.Close() // returns it to the pool
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
	if refusal, ok := errors.AsType[redis.Error](err); ok && refusal == "ERR syntax error" { // a server older than Redis 6
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

// slots returns the slots of each master of a Cluster. It returns "" for another deployment, and while a slot is being moved.
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
		_ = c.Close() // returns it to the pool
		if err != nil {
			return "", err
		}
		own, moving := redisconn.OwnSlots(text)
		if moving {
			return "", nil
		}
		if words := strings.SplitN(own, " ", 3); len(words) == 3 { // without the id and the epoch of the node, which a failover changes
			all = append(all, words[2])
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; "), nil
}

// missed returns the reason why keys may have been read at no master, or nil. A key is missed if it moves from a master that was not read
// yet to a master that was already read.
func (k *Keys) missed(ctx context.Context, masters []*redisconn.Server, before string) error {
	now, err := k.slots(ctx, masters)
	switch {
	case err != nil:
		return err
	case k.store.IsCluster() && (now == "" || now != before):
		return errors.New("slots of the cluster moved during the pass")
	}
	return nil
}

// checkRun makes the reading of a server begin again if the server's process has changed. It returns how many keys the server has.
func (k *Keys) checkRun(ctx context.Context, c redis.Conn, p *scanPosition) (held int64, err error) {
	var infos [2]string
	for i, section := range []string{"server", "keyspace"} {
		if infos[i], err = redis.String(redis.DoContext(c, ctx, "INFO", section)); err != nil {
			return 0, err
		}
	}
	if run := runOf(infos[0]); p.Run != run {
		p.Run, p.Cursor = run, "0"
	}
	if _, number, ok := strings.Cut(infos[1], fmt.Sprintf("\ndb%d:keys=", k.store.Database())); ok { // otherwise the database has no keys
		number, _, _ = strings.Cut(number, ",")
		held, err = strconv.ParseInt(number, 10, 64)
	}
	return held, err
}

// runOf returns the run id of a server, from INFO.
func runOf(info string) string {
	_, run, _ := strings.Cut(info, "run_id:")
	run, _, _ = strings.Cut(run, "\r\n")
	return run
}

// fraction returns the share of a server's keys that lie before a cursor. Redis counts cursors up from the highest bit, so the cursor with
// its bits reversed grows during the scan.
func fraction(cursor string) float64 {
	n, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return 0
	}
	if n == 0 {
		return 1 // the end of the scan, because no caller asks before the first reply
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
	defer c.Close() // returns it to the pool
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
