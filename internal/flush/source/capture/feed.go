package capture

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/follow"
)

// keyCost is the memory of a pending key beside its name, in bytes.
const keyCost = 64

// feed holds the changes that one job still has to read. It receives them from the streams from its first use until it is closed, whether
// the job runs or not.
type feed struct {
	feedOptions
	// changed has an entry after a change of the feed.
	changed chan struct{}

	mu        sync.Mutex
	begun     bool
	gen       int // counts the beginnings
	need      int // the number of masters; 0: unknown
	joined    bool
	since     time.Time // since when it is not joined
	tries     int       // failures to follow a stream
	problem   error     // the reason of the last failure
	joinNotes []string  // how the streams were joined, for the operator
	events    []Event

	pending   map[string]struct{}
	bytes     int
	marks     []*mark
	full      bool      // no keys are noted, since a pass will read all of them
	emptied   string    // the command that has emptied the database, until an operator or on_flush has decided
	debts     int       // counts the events that require a pass over all keys
	breaks    int       // counts the breaks of the stream: see Reason.breaks
	whole     int       // the value of breaks when the pending keys were last taken or dropped
	paid      int       // the value of debts up to which passes are complete
	reason    Reason    // of the first debt that is not paid
	why       string    // the same in words
	reread    reread    // the last one that was owed
	deletes   int       // the pass that pays this debt may delete every row without a key
	passAfter time.Time // the earliest time of the next pass

	promotions int
	base       string // the place in the database, as far as the feed knows
	place      place  // the same, parsed
	moved      time.Time
	batch      *batch // the last batch, until the database certainly has it
	// taken is the number of keys in it, and takenAt its time.
	taken   int
	takenAt time.Time
}

type feedOptions struct {
	follower *follower
	prefix   string
	match    func(key string) bool
	budget   int // for pending keys, in bytes
}

// mark is the position of a feed in the history of one master.
type mark struct {
	at      follow.Position // all changes up to here are pending, or in the batch
	base    follow.Position // the position in the database; zero for a new mark
	seen    int64           // see placeMark
	slots   string          // the slots of the last complete pass: see placeMark
	own     string          // the slots that the master has now
	doubted string          // the slots that a pass is owed for

	former    former
	backlog   int64
	reader    *streamReader // the stream reader that follows it; nil: none does
	rejoining bool          // it only rejoins because of another feed
	heads     []seenHead
}

// former is the history before a failover: changes of it beyond shared may have been lost.
type former struct {
	id     string
	shared int64
}

func newFeed(o feedOptions) *feed {
	return &feed{feedOptions: o, changed: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

func (f *feed) wake() { wake(f.changed) }

// expect notes the number of masters.
func (f *feed) expect(masters int) {
	f.mu.Lock()
	f.need = masters
	f.updateJoined()
	f.mu.Unlock()
	f.wake()
}

// updateJoined finds out whether all masters are followed. Then a mark without a reader is of a master that is gone.
func (f *feed) updateJoined() {
	followed := 0
	for _, m := range f.marks {
		if m.reader != nil {
			followed++
		}
	}
	was := f.joined
	f.joined = f.begun && f.need > 0 && followed == f.need
	switch {
	case was && !f.joined:
		f.since = time.Now()
	case f.joined && len(f.marks) > followed:
		f.oweLocked(otherMasters, "a master whose changes were followed is none any more")
		f.marks = slices.DeleteFunc(f.marks, func(m *mark) bool { return m.reader == nil })
	}
}

// freeMarks returns the marks without a reader, their positions, and the number of the present beginning.
func (f *feed) freeMarks() (marks []*mark, at []follow.Position, gen int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.marks {
		if m.reader == nil {
			marks, at = append(marks, m), append(at, m.at)
		}
	}
	return marks, at, f.gen
}

// noteJoin notes that a stream reader follows a master. mine are the marks that were free, and lost gives for each the reason why the
// stream does not continue there. It returns the mark of the master, and the offset from which on the feed receives changes; nil if the
// feed has begun again meanwhile.
func (f *feed) noteJoin(r *streamReader, gen int, j follow.Joined, mine []*mark, lost []follow.Loss, own slots) (m *mark, from int64) {
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
		m = &mark{at: j.At, slots: own.name}
		f.marks = append(f.marks, m)
		how, where := follow.Began, "at the end of the stream"
		if j.How == follow.Resynced {
			how, where = j.How, "behind all data, which the server sent"
		}
		f.oweLocked(reason(r, why))
		f.reportJoin(r, how, "began "+where)
	case m.at.ReplID != j.At.ReplID:
		m.former = former{m.at.ReplID, j.Shared}
		if m.seen > j.Shared {
			f.oweLocked(lostFailover, "a failover may have lost writes of which rows were made")
		}
		f.promotions++
		m.at.ReplID = j.At.ReplID
		f.reportJoin(r, follow.Promoted, "went on with the promoted master (+CONTINUE)")
	case !m.rejoining:
		f.reportJoin(r, follow.Continued, "went on where it was left (+CONTINUE)")
	}
	m.reader, m.backlog, m.rejoining = r, j.Backlog, false
	f.problem = nil
	f.noteSlotsLocked(m, own.name, !own.moving)
	f.updateJoined()
	f.wake()
	return m, m.at.Offset
}

// reason is the reason why a master is followed from its end.
func reason(r *streamReader, why follow.Loss) (Reason, string) {
	switch {
	case r.follower.store != nil && r.follower.store.IsCluster() && (why.Code == "" || why.Code == follow.LostHistory):
		return otherMasters, fmt.Sprintf("the changes of redis %s were not followed before", r.server.Address())
	case why.Code == "":
		return otherMasters, "the stream is followed from its end"
	}
	return map[follow.LossCode]Reason{
		follow.LostHistory: lostHistory, follow.LostFailover: lostFailover, follow.LostBacklog: lostBacklog}[why.Code], why.Words
}

// reportJoin reports how a stream was joined.
func (f *feed) reportJoin(r *streamReader, how follow.How, note string) {
	address := ""
	if r.server != nil {
		address = "redis " + r.server.Address() + ": "
	}
	f.report(Joined, how.String(), address+note)
	if !slices.Contains(f.joinNotes, note) {
		f.joinNotes = append(f.joinNotes, note)
	}
}

// noteSlots notes the slots of a master.
func (f *feed) noteSlots(r *streamReader, own string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.marks {
		if m.reader == r {
			f.noteSlotsLocked(m, own, true)
		}
	}
}

// noteSlotsLocked notes the slots of a master, and whether they are steady. A slot that changes its master without MIGRATE takes its keys
// with it, and no stream has commands for that.
func (f *feed) noteSlotsLocked(m *mark, own string, steady bool) {
	m.own = own
	if !steady || own == m.slots || own == m.doubted {
		return
	}
	m.doubted = own
	f.oweLocked(otherSlots, "slots of the cluster have changed hands")
	f.wake()
}

// noteFailure notes the reason why a stream is not followed.
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

// failures is how often following a stream has failed.
func (f *feed) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// noteLeft notes that a master is no longer followed. rejoining: the reader joins again in a moment.
func (f *feed) noteLeft(m *mark, r *streamReader, rejoining bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		m.reader, m.rejoining = nil, rejoining
		f.updateJoined()
	}
}

// dropMark drops a mark.
func (f *feed) dropMark(m *mark, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.at = follow.Position{}
	f.oweLocked(notReadable, why.Error())
}

// advance notes that the feed has received all changes of a master up to a position.
func (f *feed) advance(m *mark, r *streamReader, at follow.Position) {
	f.mu.Lock()
	if m.reader == r && (at.ReplID != m.at.ReplID || at.Offset >= m.at.Offset) {
		m.at = at
	}
	f.mu.Unlock()
	f.wake()
}

// noteEmptied notes a command that has emptied the database.
func (f *feed) noteEmptied(m *mark, r *streamReader, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		f.emptied = command
	}
}

// noteUnknown notes a change whose keys are unknown.
func (f *feed) noteUnknown(m *mark, r *streamReader, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.reader == r {
		f.oweLocked(notKnown, why)
	}
}

// add notes a key that may have changed.
func (f *feed) add(m *mark, r *streamReader, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.pending[string(key)]; there || f.full || m.reader != r {
		return
	}
	f.pending[string(key)] = struct{}{}
	f.bytes += keyCost + len(key)
	f.bound()
}

// bound drops the pending keys if there are too many: then a pass reads all keys.
func (f *feed) bound() {
	if f.bytes <= f.budget {
		return
	}
	f.oweLocked(tooMany, fmt.Sprintf("more than %d keys changed before they could be flushed, which is all that memory is for",
		len(f.pending)))
	f.clear()
	f.full = true
}

func (f *feed) clear() { f.pending, f.bytes, f.whole = map[string]struct{}{}, 0, f.breaks }

// oweLocked notes that all keys must be read.
func (f *feed) oweLocked(reason Reason, why string) {
	if f.debts == f.paid {
		f.reason, f.why = reason, why
	}
	f.debts++
	if reason.breaks() {
		f.breaks++
	}
}

// backlog is the number of pending keys. While a stream is not followed it is the least number, and without any an UncountedError, unless
// the reader only rejoins.
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

// rejoins reports whether all streams are followed, except those that only rejoin because of another feed.
func (f *feed) rejoins() bool {
	followed := 0
	for _, m := range f.marks {
		if m.reader != nil || m.rejoining {
			followed++
		}
	}
	return f.begun && f.need > 0 && followed == f.need && f.problem == nil
}

// endWaits makes every wait for the feed fail: it receives no more changes.
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
	for _, m := range f.marks { // a reader that still has a mark is ignored
		m.reader = nil
	}
	f.marks = nil
	f.mu.Unlock()
	if begun {
		f.follower.remove(f)
	}
}
