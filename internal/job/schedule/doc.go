// Package schedule parses cron expressions, @every and @always, and computes their slots. It reads no clock: every time is an argument.
//
//	Schedule        gives the first slot after a time, and describes itself in words
//	cronSchedule    slots of the wall clock in a time zone
//	everySchedule   slots at a fixed interval, counted from the Unix epoch, so that they keep their phase across a failover
//	alwaysSchedule  no slots: the job runs as long as its node leads
//	Count, Latest   the number of slots in a span, and the last slot, which is found by halving the span
//
// The invariants:
//
//   - Slots are whole milliseconds, and every node computes the same slots, so that a ledger can keep them exactly.
//   - A slot in the gap of a clock that is put forward is due once, right after the gap. A slot at a fixed hour that is repeated is
//     due only the first time. A schedule for every hour follows elapsed time.
//   - The slot after a time is later than that time, so that an iteration always ends.
//
// What fails, and what then:
//
//   - A schedule never fires, as on the 30th of February: Parse refuses it.
//   - A text would make the library panic, as some time zones in the text do: Parse refuses the text first.
//   - A schedule has no further slot: Next returns the zero time.
package schedule
