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

// feed is what one job is still to read of what the streams have said. It hears of them from its first use
// until it is closed, whether the job runs or not.
type feed struct {
	feedOptions
	// changed has an entry when something has.
	changed chan struct{}

	mu      sync.Mutex
	begun   bool
	gen     int // how often it has begun
	need    int // how many masters there are; 0: that is not known
	joined  bool
	since   time.Time // when it was not joined any more
	tries   int       // how often a stream was not followed
	problem error     // why, the last time
	news    []string  // how the streams were joined, for the operator
	unread  []News

	pending   map[string]struct{}
	bytes     int
	marks     []*mark
	full      bool      // no keys are noted, as all of them are to be read
	emptied   string    // the command that has emptied the database, until somebody has decided
	debts     int       // how often something was found for which all keys must be read
	breaks    int       // how often the stream broke: see Reason.breaks
	whole     int       // breaks, when there was no pending key yet
	paid      int       // up to which of these that was done
	reason    Reason    // of the first one that is not paid
	why       string    // the same in words
	reread    reread    // the last one that was owed
	deletes   int       // with the pass that pays this debt every row may go that has no key
	passAfter time.Time // there is no pass before

	promotions int
	base       string // where the database is known to be
	place      place  // the same
	moved      time.Time
	batch      *batch // what was taken last, until the database is known to have it
	// taken is of how many keys it was, and takenAt when.
	taken   int
	takenAt time.Time
}

type feedOptions struct {
	hub    *hub
	prefix string
	match  func(key string) bool
	budget int // for pending keys, in bytes
}

// mark is how far a feed is in the history of one master.
type mark struct {
	at    follow.Position // all changes up to here are pending, or in the batch
	base  follow.Position // where the database is known to be; of a new one nowhere
	seen  int64           // see placeMark
	slots string          // the same
	own   string          // which it has now
	doubt string          // for which of these a pass is owed

	former  former
	backlog int64
	line    *line // who follows it; nil: nobody
	quiet   bool  // it is joined once more for another feed
	heads   []seenHead
}

// former is the history before a failover: what was read of it beyond shared may have been lost.
type former struct {
	id     string
	shared int64
}

func newFeed(o feedOptions) *feed {
	return &feed{feedOptions: o, changed: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

func (f *feed) tell() { poke(f.changed) }

// expect notes how many masters there are.
func (f *feed) expect(masters int) {
	f.mu.Lock()
	f.need = masters
	f.count()
	f.mu.Unlock()
	f.tell()
}

// count finds out whether all masters are followed. What is left over then is the place of one that is gone.
func (f *feed) count() {
	followed := 0
	for _, m := range f.marks {
		if m.line != nil {
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
		f.marks = slices.DeleteFunc(f.marks, func(m *mark) bool { return m.line == nil })
	}
}

// free are the marks that nobody follows, where they are, and of which beginning they are.
func (f *feed) free() (marks []*mark, at []follow.Position, gen int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.marks {
		if m.line == nil {
			marks, at = append(marks, m), append(at, m.at)
		}
	}
	return marks, at, f.gen
}

// joins notes that a master is followed. mine were free, and lost says of each why the stream does not go on
// from there. It returns the mark of the master, and from where on it hears of changes; nil if it has begun
// anew meanwhile.
func (f *feed) joins(l *line, gen int, j follow.Joined, mine []*mark, lost []follow.Loss, own slots) (m *mark, from int64) {
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
		if lost[i] == (follow.Loss{}) && its.line == nil && (m == nil || its.at.Offset < m.at.Offset) {
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
		f.oweLocked(reason(l, why))
		f.says(l, how, "began "+where)
	case m.at.ReplID != j.At.ReplID:
		m.former = former{m.at.ReplID, j.Shared}
		if m.seen > j.Shared {
			f.oweLocked(lostFailover, "a failover may have lost writes of which rows were made")
		}
		f.promotions++
		m.at.ReplID = j.At.ReplID
		f.says(l, follow.Promoted, "went on with the promoted master (+CONTINUE)")
	case !m.quiet:
		f.says(l, follow.Continued, "went on where it was left (+CONTINUE)")
	}
	m.line, m.backlog, m.quiet = l, j.Backlog, false
	f.problem = nil
	f.hasLocked(m, own.name, !own.moving)
	f.count()
	f.tell()
	return m, m.at.Offset
}

// reason says why a master is followed from its end.
func reason(l *line, why follow.Loss) (Reason, string) {
	switch {
	case l.hub.store != nil && l.hub.store.IsCluster() && (why.Code == "" || why.Code == follow.LostHistory):
		return otherMasters, fmt.Sprintf("the changes of redis %s were not followed before", l.server.Address())
	case why.Code == "":
		return otherMasters, "the stream is followed from its end"
	}
	return map[follow.LossCode]Reason{
		follow.LostHistory: lostHistory, follow.LostFailover: lostFailover, follow.LostBacklog: lostBacklog}[why.Code], why.Words
}

// says reports how a stream was joined.
func (f *feed) says(l *line, how follow.How, news string) {
	address := ""
	if l.server != nil {
		address = "redis " + l.server.Address() + ": "
	}
	f.reports(Joined, how.String(), address+news)
	if !slices.Contains(f.news, news) {
		f.news = append(f.news, news)
	}
}

// has notes which slots a master has.
func (f *feed) has(l *line, own string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.marks {
		if m.line == l {
			f.hasLocked(m, own, true)
		}
	}
}

// hasLocked notes which slots a master has, and whether they stay. A slot that changes hands without MIGRATE
// takes its keys with it, and no stream says so.
func (f *feed) hasLocked(m *mark, own string, steady bool) {
	m.own = own
	if !steady || own == m.slots || own == m.doubt {
		return
	}
	m.doubt = own
	f.oweLocked(otherSlots, "slots of the cluster have changed hands")
	f.tell()
}

// failed notes why a stream is not followed.
func (f *feed) failed(err error) {
	f.mu.Lock()
	f.problem = err
	f.tries++
	if f.begun {
		f.reports(Interrupted, breakOf(err), err.Error())
	}
	f.mu.Unlock()
	f.tell()
}

// failures is how often a stream was not followed.
func (f *feed) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// left notes that a master is not followed any more. quiet: it is in a moment.
func (f *feed) left(m *mark, l *line, quiet bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.line == l {
		m.line, m.quiet = nil, quiet
		f.count()
	}
}

// lose gives a mark up.
func (f *feed) lose(m *mark, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.at = follow.Position{}
	f.oweLocked(notReadable, why.Error())
}

// reaches notes that all changes of a master up to here were heard of.
func (f *feed) reaches(m *mark, l *line, at follow.Position) {
	f.mu.Lock()
	if m.line == l && (at.ReplID != m.at.ReplID || at.Offset >= m.at.Offset) {
		m.at = at
	}
	f.mu.Unlock()
	f.tell()
}

// emptiedBy notes a command that has emptied the database.
func (f *feed) emptiedBy(m *mark, l *line, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.line == l {
		f.emptied = command
	}
}

// misses notes that something has changed of which the keys are not known.
func (f *feed) misses(m *mark, l *line, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.line == l {
		f.oweLocked(notKnown, why)
	}
}

// add notes a key that may have changed.
func (f *feed) add(m *mark, l *line, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.pending[string(key)]; there || f.full || m.line != l {
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

// backlog is how many keys are pending. While a stream is not followed it is how many are at least, and none
// means nothing.
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

// rejoins reports whether all streams are followed but those that are joined once more for another feed.
func (f *feed) rejoins() bool {
	followed := 0
	for _, m := range f.marks {
		if m.line != nil || m.quiet {
			followed++
		}
	}
	return f.begun && f.need > 0 && followed == f.need && f.problem == nil
}

// ends makes whoever waits for it hear that nothing will be heard of any more.
func (f *feed) ends() {
	f.mu.Lock()
	f.begun = false
	f.mu.Unlock()
}

// close ends it.
func (f *feed) close() {
	f.mu.Lock()
	begun := f.begun
	f.begun, f.joined, f.need = false, false, 0
	f.gen++
	for _, m := range f.marks { // who still hears of it is not heard
		m.line = nil
	}
	f.marks = nil
	f.mu.Unlock()
	if begun {
		f.hub.remove(f)
	}
}
