package job

import (
	"math/rand/v2"
	"time"
)

// The pauses before a job that runs all the time is started again after a failure.
const (
	againMin = time.Second
	againMax = 30 * time.Second
)

// alwaysSchedule is "@always": the job is started when a term begins, and again
// whenever its run has ended, until the term does. Every start is a slot of its own,
// but none is known beforehand, and none can be missed.
type alwaysSchedule struct{}

// Next implements [Schedule]: there is no next slot.
func (alwaysSchedule) Next(time.Time) time.Time { return time.Time{} }

// Describe implements [Schedule].
func (alwaysSchedule) Describe() string { return "all the time while leading" }

// IsAlways reports whether s is "@always".
func IsAlways(s Schedule) bool {
	_, always := s.(alwaysSchedule)
	return always
}

// again has a job that runs all the time started again, sooner or later by how soon it
// failed. One that lasted is not held to account for failures long ago.
func (s *session) again(e *entry, lasted time.Duration) {
	if e.anew {
		s.atOnce(e)
		return
	}
	if lasted > againMax {
		e.wait = 0
	}
	e.wait = min(max(2*e.wait, againMin), againMax)
	e.next = s.now().Add(e.wait + rand.N(e.wait/5))
	s.requeue(e)
}

// atOnce has a job that runs all the time started now.
func (s *session) atOnce(e *entry) {
	e.anew, e.wait, e.next = false, 0, s.now()
	s.requeue(e)
}
