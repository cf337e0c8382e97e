// Package chaos puts a whole installation under traffic, breaks it at random and
// audits what came of it: three nodes, a Redis that keeps what it acknowledged, a
// PostgreSQL. Nothing here shares code with the flush: what the auditor expects, it
// knows from the generator alone.
//
//	make chaos CHAOS_TIME=2m              # CHAOS_SEED=N replays a schedule of faults
//	make chaos-flush CHAOS_POOLER=1       # with a PgBouncer in transaction mode before PostgreSQL
//	make chaos-flush CHAOS_CLUSTER=1      # with the data in a Redis Cluster whose slots move; see CONTRIBUTING.md
//
// The parts: a schedule is drawn from the seed (schedule); the lab's one goroutine
// carries it out and starts again what dies, as systemd would (lab, faults,
// supervise); writers change Redis, each write with a known outcome (writer); watchers
// ask the nodes who leads and keep the histories that Redis caps (probe, follow).
// Afterwards the auditor compares (audit), the judges look at the records (judge), and
// the report says it (report).
package chaos

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
