package capture

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/follow"
)

// keyCost is the memory in bytes that a pending key needs in addition to the key's name.
const keyCost = 64

// feed contains the changes that one job must still read. From its first use until it is closed, it receives the changes from the streams,
// also while the job does not run.
type feed struct {
	feedOptions
	// changed gets an entry at each change of the feed.
	changed chan struct{}

	mu        sync.Mutex
	begun     bool
	gen       int // counts how often the feed has begun
	need      int // the number of masters; 0 if it is unknown
	joined    bool
	since     time.Time // the time since which the streams are not followed
	tries     int       // failures to follow a stream
	problem   error     // the reason of the last failure
	joinNotes []string  // messages that tell the operator how the streams were joined
	events    []Event

	pending    map[string]struct{}
	bytes      int
	cursors    []*cursor
	full       bool      // keys are not collected, since a pass will read all of them
	emptied    string    // the command that emptied the database, until an operator or on_flush decides
	passesOwed int       // the number of events that require a pass over all keys
	breaks     int       // the number of breaks of the stream: see Reason.breaks
	whole      int       // the value of breaks when the pending keys were last taken or dropped
	passesDone int       // the value of passesOwed up to which passes are complete
	reason     Reason    // the reason of the first pass that is owed
	why        string    // the reason in words
	reread     reread    // the newest reread for which a pass is owed
	deletes    int       // the pass up to this value of passesOwed may delete every row without a key
	passAfter  time.Time // the earliest time of the next pass

	promotions int
	base       string      // the position in the database, as far as the feed knows
	place      jobPosition // base, parsed
	moved      time.Time
	batch      *batch // the newest batch, until the database certainly has it
	// taken is the number of keys in the newest batch, and takenAt the time when it was taken.
	taken   int
	takenAt time.Time
}

type feedOptions struct {
	follower *follower
	prefix   string
	match    func(key string) bool
	budget   int // for pending keys, in bytes
}

// cursor is the position of a feed in the history of one master. In comments it is also called a mark.
type cursor struct {
	at      follow.Position // all changes up to this position are flushed, pending, or in the batch
	base    follow.Position // the position in the database; zero for a new mark
	seen    int64           // see masterPosition
	slots   string          // the slots of the last complete pass: see masterPosition
	own     string          // the slots that the master has now
	doubted string          // a pass is owed because of these slots

	former    former
	backlog   int64
	reader    *streamReader // follows the master; nil if no reader follows the master
	rejoining bool          // the reader only joins again, because of another feed
	heads     []seenHead
}

// former is the history of a master before a failover. The failover may have lost the changes after the offset in shared.
type former struct {
	id     string
	shared int64
}

func newFeed(o feedOptions) *feed {
	return &feed{feedOptions: o, changed: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

func (f *feed) wake() { wake(f.changed) }

// expect records the number of masters that the feed must follow.
func (f *feed) expect(masters int) {
	f.mu.Lock()
	f.need = masters
	f.updateJoined()
	f.mu.Unlock()
	f.wake()
}

// updateJoined checks whether all masters are followed. If they are, a mark without a reader belongs to a former master. Then updateJoined
// removes the mark and requires a pass over all keys.
func (f *feed) updateJoined() {
	followed := 0
	for _, m := range f.cursors {
		if m.reader != nil {
			followed++
		}
	}
	was := f.joined
	f.joined = f.begun && f.need > 0 && followed == f.need
	switch {
	case was && !f.joined:
		f.since = time.Now()
	case f.joined && len(f.cursors) > followed:
		f.oweLocked(otherMasters, "a server whose changes were followed is no longer a master")
		f.cursors = slices.DeleteFunc(f.cursors, func(m *cursor) bool { return m.reader == nil })
	}
}

// freeMarks returns the marks without a reader, their positions, and the number in the field gen.
func (f *feed) freeMarks() (marks []*cursor, at []follow.Position, gen int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.cursors {
		if m.reader == nil {
			marks, at = append(marks, m), append(at, m.at)
		}
	}
	return marks, at, f.gen
}

// noteJoin records that a stream reader follows a master. The arguments gen and mine are results of freeMarks: mine contains the marks
// without a reader. For each of these marks, the argument lost contains the reason why the stream cannot continue there. noteJoin returns
// the mark of the master, and the offset where the feed begins to receive changes. It returns nil if the feed has begun again since the
// call of freeMarks.
func (f *feed) noteJoin(r *streamReader, gen int, j follow.Joined, mine []*cursor, lost []follow.Loss, own slots) (m *cursor, from int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gen != gen || !f.begun {
		return nil, 0
	}
	var why follow.Loss
	for i, its := range mine {
		if lost[i] != (follow.Loss{}) && (why == (follow.Loss{}) || why.Code == follow.LostHistory) {
			why = lost[i]
		}
		if lost[i] == (follow.Loss{}) && its.reader == nil && (m == nil || its.at.Offset < m.at.Offset) {
			m = its
		}
	}
	switch {
	case m == nil:
		m = &cursor{at: j.At, slots: own.name}
		f.cursors = append(f.cursors, m)
		how, where := follow.Began, "at the end of the stream"
		if j.Kind == follow.Resynced {
			how, where = j.Kind, "after the server had sent all its data"
		}
		f.oweLocked(reason(r, why))
		f.reportJoin(r, how, "reading began "+where)
	case m.at.ReplID != j.At.ReplID:
		m.former = former{m.at.ReplID, j.Shared}
		if m.seen > j.Shared {
			f.oweLocked(lostFailover, "a failover may have lost writes that are already in the table")
		}
		f.promotions++
		m.at.ReplID = j.At.ReplID
		f.reportJoin(r, follow.Promoted, "reading went on with the promoted master (+CONTINUE)")
	case !m.rejoining:
		f.reportJoin(r, follow.Continued, "reading went on where it was left (+CONTINUE)")
	}
	m.reader, m.backlog, m.rejoining = r, j.Backlog, false
	f.problem = nil
	f.noteSlotsLocked(m, own.name, !own.moving)
	f.updateJoined()
	f.wake()
	return m, m.at.Offset
}

// reason returns the reason why the changes of a master are followed from the end of its history, and not from an earlier position.
func reason(r *streamReader, why follow.Loss) (Reason, string) {
	switch {
	case r.follower.store != nil && r.follower.store.IsCluster() && (why.Code == "" || why.Code == follow.LostHistory):
		return otherMasters, fmt.Sprintf("the changes of redis %s were not followed before", r.server.Address())
	case why.Code == "":
		return otherMasters, "baton follows the stream from its present end, and earlier changes are unknown"
	}
	return map[follow.LossCode]Reason{
		follow.LostHistory: lostHistory, follow.LostFailover: lostFailover, follow.LostBacklog: lostBacklog}[why.Code], why.Words
}

// reportJoin reports how a stream was joined.
func (f *feed) reportJoin(r *streamReader, how follow.JoinKind, note string) {
	address := ""
	if r.server != nil {
		address = "redis " + r.server.Address() + ": "
	}
	f.report(Joined, how.String(), address+note)
	if !slices.Contains(f.joinNotes, note) {
		f.joinNotes = append(f.joinNotes, note)
	}
}

// noteSlots records the slots of a master.
func (f *feed) noteSlots(r *streamReader, own string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.cursors {
		if m.reader == r {
			f.noteSlotsLocked(m, own, true)
		}
	}
}

// noteSlotsLocked records the slots of a master. The argument steady is false while one of these slots is being moved. If a slot moves to
// another master without MIGRATE, its keys move with it, and no stream contains commands for that.
func (f *feed) noteSlotsLocked(m *cursor, own string, steady bool) {
	m.own = own
	if !steady || own == m.slots || own == m.doubted {
		return
	}
	m.doubted = own
	f.oweLocked(otherSlots, "slots of the cluster have moved to other masters")
	f.wake()
}

// noteFailure records the reason why a stream is not followed.
func (f *feed) noteFailure(err error) {
	f.mu.Lock()
	f.problem = err
	f.tries++
	if f.begun {
		f.report(Interrupted, breakOf(err), err.Error())
	}
	f.mu.Unlock()
	f.wake()
}

// failures returns how often the feed has failed to follow a stream.
func (f *feed) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// noteLeft records that a reader no longer follows a master. If rejoining is true, the reader joins the stream again in a moment.
func (f *feed) noteLeft(m *cursor, r *streamReader, rejoining bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		m.reader, m.rejoining = nil, rejoining
		f.updateJoined()
	}
}

// dropMark clears the position of a mark, and records that a pass over all keys is required.
func (f *feed) dropMark(m *cursor, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.at = follow.Position{}
	f.oweLocked(notReadable, why.Error())
}

// advance records that the feed has received all changes of a master up to a position.
func (f *feed) advance(m *cursor, r *streamReader, at follow.Position) {
	f.mu.Lock()
	if m.reader == r && (at.ReplID != m.at.ReplID || at.Offset >= m.at.Offset) {
		m.at = at
	}
	f.mu.Unlock()
	f.wake()
}

// noteEmptied records that a command has emptied the database.
func (f *feed) noteEmptied(m *cursor, r *streamReader, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		f.emptied = command
	}
}

// noteUnknown records that the keys of a change are unknown.
func (f *feed) noteUnknown(m *cursor, r *streamReader, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		f.oweLocked(notKnown, why)
	}
}

// add records a key that may have changed.
func (f *feed) add(m *cursor, r *streamReader, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.pending[string(key)]; there || f.full || m.reader != r {
		return
	}
	f.pending[string(key)] = struct{}{}
	f.bytes += keyCost + len(key)
	f.bound()
}

// bound drops the pending keys if there are too many. In that case a pass reads all keys.
func (f *feed) bound() {
	if f.bytes <= f.budget {
		return
	}
	f.oweLocked(tooMany, fmt.Sprintf("more than %d keys changed before they could be flushed, which is the limit of the memory for keys",
		len(f.pending)))
	f.clear()
	f.full = true
}

func (f *feed) clear() { f.pending, f.bytes, f.whole = map[string]struct{}{}, 0, f.breaks }

// oweLocked records that a pass over all keys is required.
func (f *feed) oweLocked(reason Reason, why string) {
	if f.passesOwed == f.passesDone {
		f.reason, f.why = reason, why
	}
	f.passesOwed++
	if reason.breaks() {
		f.breaks++
	}
}

// backlog returns the number of pending keys. While a stream is not followed, the true number may be higher. If the number is 0 in this
// case, backlog returns an UncountedError, unless the reader has left the stream only to join it again.
func (f *feed) backlog() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.pending)
	if f.batch != nil {
		n += len(f.batch.keys)
	}
	switch {
	case n > 0 || f.joined || f.rejoins():
		return int64(n), nil
	case f.problem != nil:
		return 0, &flush.UncountedError{Why: f.problem.Error()}
	}
	return 0, &flush.UncountedError{Why: "the stream is not joined yet"}
}

// rejoins reports whether all streams are followed. A stream also counts if its reader has left only to join again, because of another
// feed.
func (f *feed) rejoins() bool {
	followed := 0
	for _, m := range f.cursors {
		if m.reader != nil || m.rejoining {
			followed++
		}
	}
	return f.begun && f.need > 0 && followed == f.need && f.problem == nil
}

// endWaits makes every wait for the feed fail, since the feed receives no more changes.
func (f *feed) endWaits() {
	f.mu.Lock()
	f.begun = false
	f.mu.Unlock()
}

// close ends the feed.
func (f *feed) close() {
	f.mu.Lock()
	begun := f.begun
	f.begun, f.joined, f.need = false, false, 0
	f.gen++
	for _, m := range f.cursors { // a reader that still has a mark of the feed is then ignored
		m.reader = nil
	}
	f.cursors = nil
	f.mu.Unlock()
	if begun {
		f.follower.remove(f)
	}
}
