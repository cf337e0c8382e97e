package model

import (
	"cmp"
	"slices"
)

// These limits are the sizes of arrays. FlushBounds limits the same things within them.
const (
	maxChanges  = 4
	maxKeys     = 2
	maxJobs     = 2
	maxStages   = 12 // ids of stages that are known somewhere at the same time
	maxMessages = 2
	maxWriters  = 2
)

// changes is a set of changes. The application numbers its changes from 0.
type changes uint8

// keySet is a set of keys.
type keySet uint8

func (ks keySet) has(k uint8) bool { return ks>>k&1 == 1 }

// SourceType is a type of source: see section 6.
type SourceType uint8

// These are the types of sources in the model.
const (
	Counters      SourceType = iota // a hash of increments
	PlainCounters                   // a key for each counter, and an index of changed keys
	Hashes                          // a hash for each row, and an index of changed keys
	Stream                          // a stream, which one or two jobs read and trim
	Totals                          // mode: watermark
)

// keyspace is the data of Redis.
type keyspace struct {
	live   changes        // increments that are not staged; the entries of a stream
	stage  changes        // increments in the stage
	value  [maxKeys]uint8 // hashes: the number + 1 of the last change; totals: the total
	index  keySet         // the live index
	waits  keySet         // counters with a key each: the staged index; hashes: the stage
	id     uint8          // of the stage; 0: none
	sealed bool           // the content of the stage is final
	parts  uint8          // of the sealed stage

	last, added uint8          // the stream's last id, and the number of entries ever added
	noted       [maxJobs]uint8 // {key}:baton:positions: the id in the position of each job
}

// place is a position in a stream: the id of the last entry that was read, and the number of entries added up to it.
type place struct{ id, ordinal uint8 }

// These are the states of a transaction.
const (
	isRead    uint8 = iota + 1 // a page in the memory of its leader; there is no transaction yet
	isOpen                     // ledger or position, and rows are written
	isChecked                  // the fence is ours, and locked. COMMIT may be on its way
)

// transaction writes one page.
type transaction struct {
	state    uint8
	epoch    uint8 // of the leader
	id, part uint8 // in the ledger
	has      changes
	key      uint8 // hashes and totals: the only key of the page
	value    uint8 // hashes: the value; totals: the new mark
	grown    uint8 // totals: what is added to the row
	job      uint8
	from, to place
}

// tables is the content of the database.
type tables struct {
	fence  uint8
	rows   [maxJobs]changes // the increments, or entries, that are in the table of each job
	row    [maxKeys]uint8   // hashes: the value; totals: the sum
	ledger [maxStages + 1]uint8
	newest uint8 // the id of the shard's newest batch
	mark   [maxKeys]uint8
	at     [maxJobs]place
}

// task is what a leader does next.
type task uint8

const (
	claiming  task = iota // it has to take the fence
	resting               // no run
	looking               // a stream: it has read its position
	gathering             // counters with a key each: the stage is not sealed
	reading               // the next page, or nothing more to read
	marking               // totals: it has read a total, but no mark
	writing               // it has a page, or a transaction
	noting                // only if the ledger, mark or position is not in the transaction of the rows
	removing              // hashes: the page is committed, and is in the stage
)

// writer is the leader on one node. It may wait as long as it likes before each step: it is then slow, suspended or deposed.
type writer struct {
	epoch   uint8 // 0: the node does not lead
	task    task
	id      uint8 // of the stage
	parts   uint8
	part    uint8 // the next part
	resumed bool  // the stage is one of an earlier run
	repeats uint8 // the id that it proposes once more, only without the rule FreshID
	page    transaction
	ahead   transaction // totals: a page that was read while the page before it is being written
	seen    keySet      // hashes: the ids that this run has flushed
	passed  keySet      // those of them that are still in the stage
	early   [maxKeys]uint8
	job     uint8
	at      place // stream: the position in the database
	from    place // the same, with the number of the entry as the stream shows it
	until   place // the last entry to read
	behind  uint8 // the first entry to read
	anchor  bool  // the entry at the position is there, as far as the node knows
}

// message is a request to Redis on its way. No node waits for its answer.
type message struct {
	kind  uint8
	id    uint8 // of the stage that it names
	fresh uint8 // the id that it proposes
	key   uint8
	left  uint8
	job   uint8
	at    uint8 // the id in a position
}

// Flush is a state of the protocol.
type Flush struct {
	node   [maxWriters]writer
	redis  keyspace
	saved  keyspace // a snapshot, or the data of a replica that lags
	net    [maxMessages]message
	tables tables
	orphan transaction // its client has gone, and COMMIT is on its way
	large  bool        // the configuration has larger parts now

	written uint8             // number of changes
	key     [maxChanges]uint8 // the key of each change
	id      [maxChanges]uint8 // stream: the id of each entry
	given   [maxKeys]uint8    // totals: how often each key was changed
	half    uint8             // hashes: the key + 1 of a change whose second half is to be written
	spent   FlushBounds

	// The rest is known to nobody. It says which damage Redis did itself, and what section 6 does not promise.
	staged changes          // increments that were in a stage whose content was final
	again  changes          // a failover has undone the staging of these
	gone   [maxJobs]changes // a failover has lost these
	ahead  keySet           // hashes: a failover has lost a value that the table may have
}

// FlushBounds limits how often things may happen. In a state, it counts how often they have happened.
type FlushBounds struct {
	Changes  uint8 // of the application
	Terms    uint8
	Late     uint8 // requests that Redis executes after their run has failed
	Saves    uint8 // moments at which a snapshot or a replica gets the data
	Rewinds  uint8 // failovers and restarts that lose the last writes
	Prunes   uint8 // weeks after which the ledger is pruned
	Settings uint8 // changes of the configuration
}

// FlushProtocol is the protocol of the flush in package flush and its packages source and sql, for one shard.
type FlushProtocol struct {
	Source SourceType
	Nodes  int
	Jobs   uint8 // streams: the jobs that read the stream
	Bounds FlushBounds
	Off    []Rule
	Watch  string // the only promise that is checked; "" if all promises are checked
	Calm   bool   // no fault happens
	Strict bool   // what a failover loses or undoes is no excuse: the limits of section 6 are broken promises
	Atomic bool   // the application writes a hash and its mark in one transaction
}

func (p FlushProtocol) off(r Rule) bool { return slices.Contains(p.Off, r) }

func (p FlushProtocol) broken(promise string) string {
	if p.Watch != "" && p.Watch != promise {
		return ""
	}
	return promise
}

// Start implements Protocol.
func (p FlushProtocol) Start() Flush { return Flush{} }

// of returns the changes of one key.
func (s *Flush) of(k uint8) (of changes) {
	for c := range s.written {
		if s.key[c] == k {
			of |= 1 << c
		}
	}
	return of
}

// keysOf returns the keys of some changes.
func (s *Flush) keysOf(some changes) (ks keySet) {
	for c := range s.written {
		if some>>c&1 == 1 {
			ks |= 1 << s.key[c]
		}
	}
	return ks
}

// Broken implements Protocol.
func (p FlushProtocol) Broken(s Flush) string {
	all := changes(1)<<s.written - 1
	switch p.Source {
	case Counters, PlainCounters:
		if all&^(s.redis.live|s.redis.stage|s.tables.rows[0]|s.gone[0]) != 0 {
			return p.broken(ChangeLost)
		}
	case Hashes:
		for k := range uint8(maxKeys) {
			marked := s.redis.index | s.redis.waits | s.ahead
			if s.redis.value[k] != s.tables.row[k] && !marked.has(k) && s.half != k+1 {
				return p.broken(OldValue)
			}
		}
	case Stream:
		for job := range p.Jobs {
			lost := all &^ (s.tables.rows[job] | s.gone[job])
			if p.gap(&s, s.tables.at[job]) {
				lost &^= s.redis.live // the alarm is raised, and an operator decides
			} else {
				lost &^= s.after(s.redis.live, s.tables.at[job].id)
			}
			if lost != 0 {
				return p.broken(ChangeLost)
			}
		}
	case Totals:
		for k := range maxKeys {
			if s.tables.row[k] > s.given[k] {
				return p.broken(ChangeTwice)
			}
			if s.tables.row[k] != s.tables.mark[k] && !p.off(MarkInside) {
				return p.broken(NotItsMark)
			}
		}
	}
	return ""
}

// Flushed reports whether all changes are in the database, except those that Redis has lost. An alarm also counts, because then an operator
// decides.
func (p FlushProtocol) Flushed(s Flush) bool {
	switch p.Source {
	case Counters, PlainCounters:
		return s.redis.live|s.redis.stage == 0
	case Hashes:
		return s.redis.index|s.redis.waits == 0 && s.half == 0
	case Totals:
		for k := range maxKeys {
			if s.tables.row[k] < s.redis.value[k] {
				return false
			}
		}
		return true
	}
	for job := range p.Jobs {
		if !p.gap(&s, s.tables.at[job]) && s.redis.live&^s.tables.rows[job] != 0 {
			return false
		}
	}
	return true
}

// Canonical implements Protocol. The epoch of a term is the name of its node.
func (p FlushProtocol) Canonical(s Flush) (Flush, Order) {
	o := sameOrder
	slices.SortStableFunc(o[:p.Nodes], func(a, b uint8) int { return cmp.Compare(s.node[b].epoch, s.node[a].epoch) })
	if o != sameOrder {
		old := s.node
		for i := range s.node {
			s.node[i] = old[o[i]]
		}
	}
	for i := range s.net {
		if p.futile(&s, s.net[i]) {
			s.net[i] = message{}
		}
	}
	slices.SortFunc(s.net[:], func(a, b message) int { return cmp.Compare(b.withoutIDs(), a.withoutIDs()) })
	s.renumber()
	slices.SortFunc(s.net[:], func(a, b message) int { return cmp.Compare(b.number(), a.number()) })
	return s, o
}

// futile reports whether a late request never has an effect, because it names a stage that does not exist any more.
func (p FlushProtocol) futile(s *Flush, m message) bool {
	return len(p.Off) == 0 && m.id != 0 && m.id != s.redis.id && m.id != s.saved.id
}

// renumber numbers the ids of stages in the order of their appearance. An id that appears in the ledger alone is forgotten, because no
// process names it any more.
func (s *Flush) renumber() {
	var numbers [maxStages + 1]uint8
	next := uint8(0)
	number := func(id *uint8) {
		if *id != 0 && numbers[*id] == 0 {
			next++
			numbers[*id] = next
		}
		*id = numbers[*id]
	}
	s.eachID(number)
	old := s.tables.ledger
	s.tables.ledger = [maxStages + 1]uint8{}
	for id, n := range numbers {
		if n != 0 {
			s.tables.ledger[n] = old[id]
		}
	}
	s.tables.newest = numbers[s.tables.newest]
}

// eachID calls a function for every id of a stage outside the database.
func (s *Flush) eachID(do func(*uint8)) {
	do(&s.redis.id)
	do(&s.saved.id)
	for i := range s.node {
		do(&s.node[i].id)
		do(&s.node[i].page.id)
		do(&s.node[i].ahead.id)
		do(&s.node[i].repeats)
	}
	do(&s.orphan.id)
	for i := range s.net {
		do(&s.net[i].id)
		do(&s.net[i].fresh)
	}
}

// freshID returns an id that appears nowhere.
func (s *Flush) freshID() uint8 {
	var used [maxStages + 1]bool
	s.eachID(func(id *uint8) { used[*id] = true })
	for id := uint8(1); id <= maxStages; id++ {
		if !used[id] {
			return id
		}
	}
	panic("maxStages is too small")
}

func (m message) withoutIDs() uint64 {
	m.id, m.fresh = 0, 0
	return m.number()
}

// number returns a number that only equal messages share.
func (m message) number() (v uint64) {
	for _, b := range []uint8{m.kind, m.key, m.left, m.job, m.at, m.id, m.fresh} {
		v = v<<8 | uint64(b)
	}
	return v
}
