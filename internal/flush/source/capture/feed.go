package capture

import (
	"bytes"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"baton/internal/redisconn/follow"
	"baton/internal/redisconn/follow/keys"
)

// keyCost is the memory of a pending key beside its name, in bytes.
const keyCost = 64

// feed is what one job is still to read of what the stream has said. It follows the stream by itself
// from its first use until it is closed, whether the job runs or not.
type feed struct {
	feedOptions
	table *keys.Table // of the goroutine that follows
	// changed has an entry when something has.
	changed chan struct{}

	mu      sync.Mutex
	end     func() // ends the goroutine and waits for it; nil: there is none
	joined  bool
	left    time.Time // when it was not joined any more
	tries   int       // failed attempts to join
	problem error     // of the last one, or why the stream ended
	how     follow.Joined
	news    string // how it was joined, for the operator

	pending map[string]struct{}
	bytes   int
	reached follow.Position // all changes up to here are pending, or in the batch
	full    bool            // no keys are noted, as all of them are to be read
	emptied string          // the command that has emptied the database, until somebody has decided
	debts   int             // how often something was found for which all keys must be read
	paid    int             // up to which of these that was done
	why     string          // the first one that is not paid
	deletes bool            // every row may go that has no key

	seen   int64
	former former
	base   string // where the database is known to be
	place  place  // the same
	moved  time.Time
	batch  *batch // what was taken last, until the database is known to have it
}

type feedOptions struct {
	master func() (follow.Master, tableReader)
	db     int
	number string // db as a text
	prefix string
	match  func(key string) bool
	budget int // for pending keys, in bytes
}

// former is the history before a failover: what was read of it beyond shared may have been lost.
type former struct {
	id     string
	shared int64
}

// batch is what was taken out of a feed for one stage.
type batch struct {
	keys   map[string]struct{}
	at     follow.Position
	debt   int   // the debts that this pass pays; 0: it is none
	owed   owed  // of the places of a pass
	cutOff bool  // the stream is not followed: it only moves the place
	missed error // why the pass may have missed something
	text   string
	place  place
	places []string // all that the database may have made of it
	final  string   // the last of them
}

func newFeed(o feedOptions) *feed {
	return &feed{feedOptions: o, changed: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

// remark is the channel of keys that are to be read again: a publication is part of the stream, and changes
// nothing. The message is the number of the database and the key.
const remark = "baton:capture"

// Command implements follow.Handler.
func (f *feed) Command(db int, args [][]byte) {
	if len(args) == 3 && string(args[1]) == remark && bytes.EqualFold(args[0], []byte("PUBLISH")) {
		if number, key, ok := bytes.Cut(args[2], []byte(" ")); ok && string(number) == f.number {
			(*changes)(f).Key(f.db, key)
		}
		return
	}
	if !f.table.Changes(db, args, (*changes)(f)) {
		f.owe(fmt.Sprintf("the command %s is not known, so any key may have changed", nameOf(args)))
	}
}

func nameOf(args [][]byte) string {
	if len(args) == 0 || args[0] == nil {
		return "that was too long to be read"
	}
	return fmt.Sprintf("%.40q", args[0])
}

// Reached implements follow.Handler.
func (f *feed) Reached(at follow.Position) {
	f.mu.Lock()
	f.reached = at
	f.mu.Unlock()
	f.tell()
}

func (f *feed) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// changes is a feed as it is told of changes.
type changes feed

// Key implements keys.Visitor.
func (c *changes) Key(db int, key []byte) {
	if db != c.db && db != follow.AnyDB || len(key) < len(c.prefix) || string(key[:len(c.prefix)]) != c.prefix {
		return
	}
	if !c.match(unsafe.String(unsafe.SliceData(key), len(key))) { //nolint:gosec // it is not kept
		return
	}
	(*feed)(c).add(key)
}

// Flushed implements keys.Visitor.
func (c *changes) Flushed(db int) {
	if db == c.db || db == follow.AnyDB || db == keys.AllDBs {
		(*feed)(c).emptiedBy("FLUSHALL or FLUSHDB")
	}
}

// Swapped implements keys.Visitor.
func (c *changes) Swapped(a, b int) {
	if a != b && (a == c.db || b == c.db) {
		(*feed)(c).emptiedBy("SWAPDB")
	}
}

func (f *feed) emptiedBy(command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.emptied = command
}

// add notes a key that may have changed.
func (f *feed) add(key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.pending[string(key)]; there || f.full {
		return
	}
	f.pending[string(key)] = struct{}{}
	f.bytes += keyCost + len(key)
	f.bound()
}

// bound gives up the pending keys if there are too many: then all keys are read.
func (f *feed) bound() {
	if f.bytes <= f.budget {
		return
	}
	f.oweLocked(fmt.Sprintf("more than %d keys changed before they could be flushed, which is all that memory is for", len(f.pending)))
	f.clear()
	f.full = true
}

func (f *feed) clear() { f.pending, f.bytes = map[string]struct{}{}, 0 }

// owe notes that all keys must be read.
func (f *feed) owe(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oweLocked(why)
}

func (f *feed) oweLocked(why string) {
	if f.debts == f.paid {
		f.why = why
	}
	f.debts++
}

func (f *feed) isJoined() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.joined
}

// backlog is how many keys are pending.
func (f *feed) backlog() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.pending)
	if f.batch != nil {
		n += len(f.batch.keys)
	}
	return int64(n)
}

// The occasions on which the place of a job that has nothing to do is moved: so that it does not fall out of
// the server's backlog.
const (
	moveEvery = 30 * time.Second
	moveShare = 8 // after this part of the backlog
)

// shouldMove reports whether the place in the database is to follow the stream, without any changes.
func (f *feed) shouldMove() bool {
	switch {
	case f.reached.ReplID == "":
		return false
	case f.base == "" || f.place.owed != owesNothing: // the pass that was owed is over
		return true
	case f.reached == f.place.at:
		return false
	}
	behind := f.reached.Offset - f.place.at.Offset
	return !f.joined || f.reached.ReplID != f.place.at.ReplID ||
		time.Since(f.moved) > moveEvery || behind > f.how.Backlog/moveShare
}

// saw notes up to where values were read of a history. Its error says that it was not the one that is
// followed.
func (f *feed) saw(head follow.Position) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch head.ReplID {
	case f.reached.ReplID:
	case f.former.id:
		if head.Offset > f.former.shared {
			f.oweLocked("values were read of a master that was replaced in that moment")
		}
	default:
		return fmt.Errorf("the values were read of another master than the one whose changes are followed: %w", follow.ErrNotMaster)
	}
	f.seen = max(f.seen, head.Offset)
	return nil
}
