package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/object"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// setGroup is how many sets are read at the same time: each reply may have as many
// members as the pace allows, or what Redis keeps in one piece.
const setGroup = 64

// scanRows collects the rows of a pass into pages, one of each lane at a time.
type scanRows struct {
	*Scan
	generation row.Raw
	yield      func(flush.Page) error
	pace       redisconn.Pace
	lanes      []laneRows
	// reused: the keys of a group, and of hashes their fields and their records
	keys      []scanned
	fieldRaws []row.Raw
	found     []row.Record
	gone      bool // a key that is not there has a record, too
	object    object.Decoder
}

// laneRows are the rows of a lane that wait for their page to be full.
type laneRows struct {
	*paging.Memory
	bytes int
}

// scanned is one key, and the values for its records.
type scanned struct {
	key          string
	captures     []string
	fields       []row.Raw
	value, score row.Raw
	gone         bool
	err          error // of this key alone
}

func newScanRows(s *Scan, generation int64, yield func(flush.Page) error) *scanRows {
	r := &scanRows{
		Scan: s, generation: row.Raw{Text: strconv.FormatInt(generation, 10), OK: true}, yield: yield,
		pace: redisconn.NewPace(paging.Depth, paging.Reply(s.bytes)), lanes: make([]laneRows, s.lanes), object: object.New(s.fields),
	}
	return r
}

// group is how many keys are read for a lane before the next lane's turn.
func (s *Scan) group() int {
	if s.HasMembers() {
		return setGroup
	}
	return min(s.pageRows, paging.Depth)
}

// HasMembers reports whether each key is as many rows as it has members.
func (s *Scan) HasMembers() bool { return s.whole && (s.value == "set" || s.value == "zset") }

// read reads the keys of ids, which are of one lane.
func (r *scanRows) read(ctx context.Context, c redisconn.Conn, lane int, ids []string) error {
	for len(ids) > 0 {
		n := min(r.pace.Depth(), len(ids))
		if len(r.keys) < n {
			r.keys = make([]scanned, n)
		}
		keys := r.keys[:n]
		for i := range keys {
			keys[i].key, keys[i].captures = r.keyOf(ids[i : i+1 : i+1])
		}
		if err := r.readKeys(ctx, c, lane, keys); err != nil {
			return err
		}
		clear(keys) // the page alone may keep the read texts in memory
		clear(r.fieldRaws)
		ids = ids[n:]
	}
	return nil
}

// readKeys reads keys and adds their records to the lane's page.
func (r *scanRows) readKeys(ctx context.Context, c redisconn.Conn, lane int, keys []scanned) error {
	if r.HasMembers() {
		return r.readMembers(ctx, c, lane, keys)
	}
	var all []scanned
	if r.gone {
		all = slices.Clone(keys)
	}
	var err error
	switch {
	case r.value == "hash" && len(r.fields) > 0:
		keys, err = r.readHashes(ctx, c, keys)
	case r.whole || len(r.fields) > 0:
		keys, err = r.readStrings(ctx, c, keys)
	default:
		keys, err = r.readTypes(ctx, c, keys)
	}
	if err != nil {
		return r.fail("read keys of", err)
	}
	if r.gone {
		keys = withGone(all, keys)
	}
	size, err := r.add(lane, keys)
	if len(keys) > 0 {
		r.pace.Learn(size)
	}
	return err
}

// withGone puts the read keys in their places among all. The others are gone.
func withGone(all, read []scanned) []scanned {
	for i := range all {
		if len(read) > 0 && read[0].key == all[i].key {
			all[i], read = read[0], read[1:]
			continue
		}
		all[i].gone = true
	}
	return all
}

// readHashes reads fields. A key that is gone, or no longer a hash, is left out.
func (r *scanRows) readHashes(ctx context.Context, c redisconn.Conn, keys []scanned) ([]scanned, error) {
	n := len(r.fields)
	if len(r.found) < len(keys) {
		r.fieldRaws, r.found = make([]row.Raw, len(keys)*n), make([]row.Record, len(keys))
	}
	records := r.found[:len(keys)]
	defer clear(records)
	for i := range keys {
		records[i] = row.Record{Key: keys[i].key, Inputs: r.fieldRaws[i*n : (i+1)*n : (i+1)*n]}
	}
	if err := r.hashes.readBatch(ctx, c, records); err != nil {
		return nil, err
	}
	there := keys[:0]
	for i, rec := range records {
		if rec.Gone || errors.Is(rec.Err, staging.ErrWrongType) {
			continue
		}
		keys[i].fields, keys[i].err = rec.Inputs, rec.Err
		there = append(there, keys[i])
	}
	return there, nil
}

// readStrings reads strings, and the objects in them. A key that is gone, or no longer a string, is left out.
func (r *scanRows) readStrings(ctx context.Context, c redisconn.Conn, keys []scanned) ([]scanned, error) {
	replies, err := r.ask(ctx, c, perKey("GET", keys))
	if err != nil {
		return nil, err
	}
	there := keys[:0]
	for i := range keys {
		text, ok := replies[i].([]byte)
		if !ok {
			continue
		}
		k := keys[i]
		k.value = row.Raw{Text: redisconn.Text(text), OK: true}
		if len(r.fields) > 0 {
			k.fields = make([]row.Raw, len(r.fields))
			k.err = r.object.Decode(k.value.Text, text, k.fields)
		}
		there = append(there, k)
	}
	return there, nil
}

// readTypes skips keys that are gone or of another type, if no input needs a value.
func (r *scanRows) readTypes(ctx context.Context, c redisconn.Conn, keys []scanned) ([]scanned, error) {
	replies, err := r.ask(ctx, c, perKey("TYPE", keys))
	if err != nil {
		return nil, err
	}
	there := keys[:0]
	for i := range keys {
		if replies[i] == scanTypes[r.value] {
			there = append(there, keys[i])
		}
	}
	return there, nil
}

func perKey(name string, keys []scanned) []redisconn.Command {
	commands := make([]redisconn.Command, len(keys))
	for i := range keys {
		commands[i] = redisconn.Cmd(name, keys[i].key)
	}
	return commands
}

// readMembers reads sets, a few members of each in turn, and all together as many as the pace
// allows.
func (r *scanRows) readMembers(ctx context.Context, c redisconn.Conn, lane int, keys []scanned) error {
	name, stride := "SSCAN", 1
	if r.value == "zset" {
		name, stride = "ZSCAN", 2
	}
	cursors := make([]string, len(keys))
	for i := range cursors {
		cursors[i] = "0"
	}
	for len(keys) > 0 {
		turn := min(r.pace.Depth(), len(keys))
		commands := make([]redisconn.Command, turn)
		for i := range commands {
			commands[i] = redisconn.Cmd(name, keys[i].key, cursors[i], "COUNT", r.pace.Depth()/turn)
		}
		replies, err := r.ask(ctx, c, commands)
		if err != nil {
			return r.fail("read keys of", err)
		}
		left := 0
		var reply redisconn.Paced
		for i := range keys {
			if i >= turn { // it waits for the next turn
				keys[left], cursors[left] = keys[i], cursors[i]
				left++
				continue
			}
			if isWrongType(replies[i]) {
				continue
			}
			rows, next, err := membersOf(keys[i], replies[i], stride)
			if err != nil {
				return r.fail(fmt.Sprintf("%s %q of", name, keys[i].key), err)
			}
			size, err := r.add(lane, rows)
			if err != nil {
				return err
			}
			reply.Records, reply.Bytes, reply.Largest = reply.Records+size.Records, reply.Bytes+size.Bytes, max(reply.Largest, size.Largest)
			if next != "0" {
				keys[left], cursors[left] = keys[i], next
				left++
			}
		}
		r.pace.Learn(reply)
		keys, cursors = keys[:left], cursors[:left]
	}
	return nil
}

// membersOf reads one reply of SSCAN or ZSCAN.
func membersOf(key scanned, reply any, stride int) (rows []scanned, next string, err error) {
	parts, err := redis.Values(reply, nil)
	if err != nil {
		return nil, "", err
	}
	var elements [][]byte
	if _, err := redis.Scan(parts, &next, &elements); err != nil {
		return nil, "", err
	}
	rows = make([]scanned, 0, len(elements)/stride)
	for i := 0; i+stride <= len(elements); i += stride {
		element := key
		element.value = row.Raw{Text: redisconn.Text(elements[i]), OK: true}
		if stride == 2 {
			element.score = row.Raw{Text: redisconn.Text(elements[i+1]), OK: true}
		}
		rows = append(rows, element)
	}
	return rows, next, nil
}

// add makes records of the read values and yields the lane's page whenever it is full.
func (r *scanRows) add(lane int, rows []scanned) (size redisconn.Paced, err error) {
	l := &r.lanes[lane]
	size.Records = len(rows)
	for i := range rows {
		record := r.record(&rows[i], r.generation, r.raws(l))
		bytes := record.Size()
		if len(l.Records) > 0 && l.bytes+bytes > r.bytes { // it is too long for this page
			if err := r.turn(lane); err != nil {
				return size, err
			}
			record = r.record(&rows[i], r.generation, r.raws(l))
		}
		record.Err, record.Gone = rows[i].err, rows[i].gone
		l.bytes += bytes
		size.Bytes, size.Largest = size.Bytes+bytes, max(size.Largest, bytes)
		l.Records = append(l.Records, record)
		if len(l.Records) >= r.pageRows {
			if err := r.turn(lane); err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

// raws are the inputs of a record in the lane's page.
func (r *scanRows) raws(l *laneRows) []row.Raw {
	if l.Memory == nil {
		l.Memory = paging.NewMemory(r.pageRows)
	}
	return l.Raws(len(r.slots), r.pageRows*len(r.slots))
}

// turn yields the page of a lane.
func (r *scanRows) turn(lane int) error {
	l := r.lanes[lane]
	r.lanes[lane] = laneRows{}
	if l.Memory == nil || len(l.Records) == 0 {
		return nil
	}
	return r.yield(flush.Page{Part: -1, Lane: lane, Records: l.Records, Left: l.Left})
}

// flush yields the unfinished pages.
func (r *scanRows) flush() error {
	for lane := range r.lanes {
		if err := r.turn(lane); err != nil {
			return err
		}
	}
	return nil
}
