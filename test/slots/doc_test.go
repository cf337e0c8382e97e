// Package slots checks what becomes of every slot of jobs that run commands: five real
// nodes on a Redis that keeps what it acknowledged, under a nemesis that is drawn from a
// seed. The commands themselves write down that they begin, live and end, and a judge
// compares that with the schedules, which it computes itself, and with the history.
//
//	make chaos-slots CHAOS_FAULTS=200     # CHAOS_SEED=N replays a schedule of faults
//
// The parts: jobs of every policy (jobs), what their command writes (packages wire and
// work), the installation (lab) and who breaks it (faults, supervise). Afterwards the
// evidence is gathered (starts, history) and judged (judge), and the report says it
// (report). A test of its own steps wall clocks (clock).
//
// # What must hold
//
//   - An attempt of a slot starts once at most; a slot has one attempt unless its job may
//     be retried or rerun.
//   - Every slot is started, or the history says why not: missed with a reason, or a run
//     that was claimed and came to nothing. No slot is both started and missed.
//   - After every outage the latest slot of a job that catches up is started, and with
//     on_lost: rerun it runs to its end. With catch_up: all every slot is started.
//   - No process of a term lives when a later term of the same lock starts anything.
//   - Two runs of a job go on at a time only with overlap: allow.
//   - The history is true: what it says succeeded did, and everything that was started is
//     in it.
//
// What the installation as a whole promises is what this shows. It is kept twice: here the
// election alone would hide a ledger that grants a slot to a leader that was deposed, or
// twice. That the ledger does neither is for its conformance tests (job/jobtest).
package slots

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
