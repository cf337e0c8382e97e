package slots

import "time"

// evidence is all that the judge looks at. Moments of runs are of the clock that all
// processes share and nothing steps, and count from any moment.
type evidence struct {
	jobs    []spec
	runs    []run
	entries []entry
	terms   []term
	broken  []span
	// from is when every job was known to the ledger, until when everything that was due
	// had time to be dealt with.
	from, until time.Time
	patience    time.Duration // what a term may take to start what it has to
	probes      []probe       // what it takes this machine to start anything at all
}

// probe is how long the start of a process that does nothing took, at some moment.
type probe struct {
	at   time.Time
	took time.Duration
}

// patienceFor is what a term that was won then may take to start all of its jobs. On a machine
// that other tests share, it is a multiple of what a start took meanwhile.
func (e evidence) patienceFor(won time.Time) time.Duration {
	slowest := time.Duration(0)
	for _, p := range e.probes {
		if p.at.Add(p.took).After(won) && p.at.Before(won.Add(e.patience)) {
			slowest = max(slowest, p.took)
		}
	}
	return e.patience + time.Duration(len(e.jobs))*slowest
}

// run is what a command wrote down.
type run struct {
	job, id, node string
	trigger       string
	lock          string
	slot          time.Time
	attempt       int
	epoch         int64
	began, alive  time.Duration // alive: when some process of it last was
	at            time.Time     // began, by the wall clock
	ended         bool          // in order, with that code
	code          int
}

// entry is what the history says: of one run, or of slots that were not run.
type entry struct {
	job, state string
	reason     string // of missed slots
	first      time.Time
	slot       time.Time // of a run; the last of those that were missed
	count      int
	id         string
	attempt    int
}

func (e entry) missed() bool { return e.reason != "" }

// term is a leadership of a lock.
type term struct {
	lock, node string
	epoch      int64
	won        time.Time
	// stopped is when it was told to stop, for whatever reason; zero: nobody has told.
	stopped time.Time
}

// span is some time.
type span struct{ from, to time.Time }

func (s span) meets(o span) bool { return !s.to.Before(o.from) && !o.to.Before(s.from) }
