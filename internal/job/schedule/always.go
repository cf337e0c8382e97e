package schedule

import "time"

// alwaysSchedule is "@always": the job starts when a term begins, and restarts whenever its run has ended, until the term ends. Every
// start is a slot. Slots are not fixed in advance and cannot be missed.
type alwaysSchedule struct{}

// Next implements [Schedule]. There is no next slot.
func (alwaysSchedule) Next(time.Time) time.Time { return time.Time{} }

// Describe implements [Schedule].
func (alwaysSchedule) Describe() string { return "all the time while leading" }

// IsAlways reports whether s is "@always".
func IsAlways(s Schedule) bool {
	_, always := s.(alwaysSchedule)
	return always
}
