package model

import (
	"cmp"
	"slices"
)

// maxCommands is the maximum number of commands in a replication stream.
const maxCommands = 4

// These are the commands in a replication stream. A command changeOf + k changes or deletes key k.
const (
	flushAll uint8 = iota + 1
	changeOf
)

// OnFlush is the setting on_flush.
type OnFlush uint8

// These are the values of OnFlush.
const (
	FlushStop OnFlush = iota
	FlushPass
	FlushDelete
)

// offsetIn is an offset in a history. The id of a history is its replid; 0: there is no history.
type offsetIn struct{ id, offset uint8 }

// master is the server that is the master now.
type master struct {
	value  [maxKeys]uint8     // the number of the write; 0: the key is absent
	at     offsetIn           // the end of its history
	second offsetIn           // the former history, up to the offset that both histories share
	oldest uint8              // the backlog has all commands after this offset
	log    [maxCommands]uint8 // the command before offset i + 1
	wiped  keySet             // keys that FLUSHALL has removed
}

// owing says whether a pass over all keys is owed.
type owing uint8

const (
	owesNone   owing = iota // "-"
	owesPass                // "p"
	owesDelete              // "d": and every row without a key may go
)

// capturePlace is the place of the job in the database.
type capturePlace struct {
	at   offsetIn
	seen uint8
	owed owing
}

// These say what the place in the database is, for one leader.
const (
	isOther uint8 = iota // another leader has moved it, or the leader has not read it
	isBase               // as the leader has read it
	isPage               // that of a page of the leader's batch
	isFinal              // that of the last page of the leader's batch
)

// These say when the last event occurred that owes a pass.
const (
	inBatch uint8 = iota + 1 // before the present pass was taken
	afterIt                  // after that
)

// captureFeed is the feed of one leader. It receives changes also between runs.
type captureFeed struct {
	joined  bool     // the stream is followed
	at      offsetIn // all changes before are flushed, pending, or in the batch
	base    offsetIn // the same in the database
	noted   owing    // what the place in the database owes
	seen    uint8
	pending keySet
	emptied bool  // a FLUSHALL waits for a decision
	owed    uint8 // a pass
	deletes uint8 // a pass that may delete every row without a key
	where   uint8
}

// captureBatch is what one stage has taken from the feed.
type captureBatch struct {
	taken, pass bool
	keys        keySet
	at          offsetIn
	owed        owing // written by the pages of a pass, and by the last page of another batch
	was         owing // written by the other pages
	lost        bool  // the mark of the batch is not the mark of the feed any more, and these are its values:
	base        offsetIn
	seen        uint8
	broke       bool   // the stream broke after the batch was taken
	promoted    bool   // a master was promoted after the last values were read
	found       keySet // a pass: the keys that it has read
	witness     uint8  // a pass: the history in which it began
	ended       bool   // a pass: it has its last page
	missed      bool   // a pass: it may have missed keys, because its master was replaced
}

// capturePage is a transaction: a row, and the place.
type capturePage struct {
	epoch uint8
	has   bool  // there is a row
	key   uint8 // of the row
	value uint8 // 0: the row is deleted
	gone  bool  // the key was absent when it was read
	wiped bool  // FLUSHALL had removed it
	sweep bool  // the page does not move the place
	final bool
	early offsetIn // the end of the history before the key was read
	to    capturePlace
	done  bool // committed, but the answer is lost
}

// These are the tasks of a leader of a capture.
const (
	toClaim   uint8 = iota
	toBegin         // no run
	toTake          // it has read the place
	toRead          // the next key
	toAsk           // a key was read: up to where?
	toWrite         // a page
	toSearch        // the sweep: the next row
	toReceive       // the sweep: the key of a row is missing. Was its removal received?
)

// capturer is the leader on one node. It may wait as long as it likes before each step.
type capturer struct {
	epoch uint8 // 0: the node does not lead
	task  uint8
	next  uint8 // the next key
	feed  captureFeed
	batch captureBatch
	page  capturePage
}

// Capture is a state of the protocol.
type Capture struct {
	node   [maxWriters]capturer
	redis  master
	saved  master // a replica that lags, or a snapshot
	fence  uint8
	row    [maxKeys]uint8
	place  capturePlace
	orphan capturePage // its client has gone, and COMMIT is on its way
	owner  uint8       // the epoch + 1 of the leader that sent it
	ids    uint8       // number of histories
	spent  CaptureBounds
}

// CaptureBounds limits how often things may happen. In a state, it counts how often they have happened.
type CaptureBounds struct {
	Writes    uint8 // of the application
	Flushes   uint8 // FLUSHALL
	Terms     uint8
	Saves     uint8 // moments at which the replica or the snapshot gets the data
	Failovers uint8 // the replica is promoted
	Restarts  uint8 // with the data of the snapshot, and without the history
	Unheard   uint8 // COMMITs without an answer
}

// CaptureProtocol is the protocol of package capture with one master.
type CaptureProtocol struct {
	Nodes   int
	Backlog uint8 // the number of commands that the master keeps
	OnFlush OnFlush
	Bounds  CaptureBounds
	Off     []Rule
	Watch   string // the only promise that is checked; "" if all promises are checked
	Calm    bool   // no fault happens, and the application writes nothing
}

func (p CaptureProtocol) off(r Rule) bool { return slices.Contains(p.Off, r) }

func (p CaptureProtocol) broken(promise string) string {
	if p.Watch != "" && p.Watch != promise {
		return ""
	}
	return promise
}

// Start implements Protocol.
func (p CaptureProtocol) Start() Capture {
	return Capture{redis: master{at: offsetIn{id: 1}}, saved: master{at: offsetIn{id: 1}}, ids: 1}
}

// lacks reports whether the master cannot continue from a position.
func (p CaptureProtocol) lacks(m *master, at offsetIn) bool {
	switch {
	case at.id == 0 || at.id != m.at.id && at.id != m.second.id:
		return true
	case at.id != m.at.id && at.offset > m.second.offset && !p.off(UpToShared):
		return true
	}
	return at.offset < m.oldest || at.offset > m.at.offset
}

// mayHaveLost reports whether a failover may have lost a change that is in a row.
func (p CaptureProtocol) mayHaveLost(m *master, at offsetIn, seen uint8) bool {
	return at.id != m.at.id && seen > m.second.offset && !p.off(SeenShared)
}

// says reports whether the stream after a position, or its lack, tells that a key has to be read.
func (p CaptureProtocol) says(m *master, at offsetIn, seen, k uint8) bool {
	if p.lacks(m, at) {
		return !p.off(LackOwes)
	}
	for _, command := range m.log[at.offset:m.at.offset] {
		if command == flushAll || command == changeOf+k {
			return true
		}
	}
	return p.mayHaveLost(m, at, seen)
}

// Broken implements Protocol.
func (p CaptureProtocol) Broken(s Capture) string {
	for k := range uint8(maxKeys) {
		if s.row[k] == s.redis.value[k] {
			continue
		}
		if s.place != (capturePlace{}) && s.place.owed == owesNone && !p.says(&s.redis, s.place.at, s.place.seen, k) {
			return p.broken(PlaceSilent)
		}
		for i := range s.node {
			if n := &s.node[i]; n.epoch != 0 && n.epoch == s.fence && n.feed.where != isOther && !p.knows(&s, n, k) {
				return p.broken(FeedSilent)
			}
		}
	}
	return ""
}

// knows reports whether a leader knows that a key has to be read, or will learn it from the stream.
func (p CaptureProtocol) knows(s *Capture, n *capturer, k uint8) bool {
	f := &n.feed
	return f.owed > 0 || f.emptied || f.pending.has(k) || n.batch.taken && n.batch.keys.has(k) && f.where != isFinal ||
		p.says(&s.redis, f.at, f.seen, k)
}

// UpToDate reports whether the table is equal to the keys, and the place says that nothing is owed. A capture that waits for the decision
// of an operator after FLUSHALL also counts.
func (p CaptureProtocol) UpToDate(s Capture) bool {
	for i := range s.node {
		if n := &s.node[i]; n.epoch == s.fence && n.feed.emptied && p.OnFlush == FlushStop {
			return true
		}
	}
	return s.row == s.redis.value && s.place.at == s.redis.at && s.place.owed == owesNone
}

// Canonical implements Protocol. The epoch of a term is the name of its node.
func (p CaptureProtocol) Canonical(s Capture) (Capture, Order) {
	o := sameOrder
	slices.SortStableFunc(o[:p.Nodes], func(a, b uint8) int { return cmp.Compare(s.node[b].epoch, s.node[a].epoch) })
	if o != sameOrder {
		old := s.node
		for i := range s.node {
			s.node[i] = old[o[i]]
		}
	}
	return s, o
}
