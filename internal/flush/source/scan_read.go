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

// setGroup is the number of sets that are read at the same time. Each reply may have as many members as the pace allows. Redis returns all
// members at once for a set with a compact encoding.
const setGroup = 64

// scanRows collects the rows of a pass into pages. Each lane has at most one unfinished page.
type scanRows struct {
	*Scan
	generation row.Raw
	yield      func(flush.Page) error
	pace       redisconn.Pace
	lanes      []laneRows
	// These slices are used again for each group: its keys, and the fields and records of its hashes.
	keys      []scanned
	fieldRaws []row.Raw
	found     []row.Record
	gone      bool // a missing key also gets a record
	object    object.Decoder
}

// laneRows are the rows of a lane whose page is not full yet.
type laneRows struct {
	*paging.Memory
	bytes int
}

// scanned is one key, with the values for its records.
type scanned struct {
	key          string
	captures     []string
	fields       []row.Raw
	value, score row.Raw
	gone         bool
	err          error // an error that concerns only this key
}

func newScanRows(s *Scan, generation int64, yield func(flush.Page) error) *scanRows {
	r := &scanRows{
		Scan: s, generation: row.Raw{Text: strconv.FormatInt(generation, 10), OK: true}, yield: yield,
		pace: redisconn.NewPace(paging.Depth, paging.Reply(s.bytes)), lanes: make([]laneRows, s.lanes), object: object.New(s.fields),
	}
	return r
}

// group returns how many keys are read for one lane before keys are read for the next lane.
func (s *Scan) group() int {
	if s.HasMembers() {
		return setGroup
	}
	return min(s.pageRows, paging.Depth)
}

// HasMembers reports whether each member of a key is a row.
func (s *Scan) HasMembers() bool { return s.whole && (s.value == "set" || s.value == "zset") }

// read reads the keys of ids. All of them belong to one lane.
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
		clear(keys) // so that no texts stay in memory except the texts of the page
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

// withGone returns all keys in their order, with the values of the keys that were read. It marks the other keys as gone.
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

// readHashes reads fields. It leaves out a key that is missing, or is no hash any longer.
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

// readStrings reads strings, and the objects in them. It leaves out a key that is missing, or is no string any longer.
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

// readTypes returns the keys that exist and have the right type. It is for jobs whose inputs need no value.
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

// readMembers reads sets in turns. In each turn it reads a few members of each set. For all sets of a turn together, it reads as many
// members as the pace allows.
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
			if i >= turn { // the set is read in the next turn
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

// membersOf parses one reply of SSCAN or ZSCAN.
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

// add makes records of the read values, and yields the lane's page whenever it is full.
func (r *scanRows) add(lane int, rows []scanned) (size redisconn.Paced, err error) {
	l := &r.lanes[lane]
	size.Records = len(rows)
	for i := range rows {
		record := r.record(&rows[i], r.generation, r.raws(l))
		bytes := record.Size()
		if len(l.Records) > 0 && l.bytes+bytes > r.bytes { // the record is too long for this page
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

// raws returns empty inputs for a record, in the memory of the lane's page.
func (r *scanRows) raws(l *laneRows) []row.Raw {
	if l.Memory == nil {
		l.Memory = paging.NewMemory(r.pageRows)
	}
	return l.Raws(len(r.slots), r.pageRows*len(r.slots))
}

// turn yields the page of a lane, and begins a new page.
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
