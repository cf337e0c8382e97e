// Package capture captures a Redis that programs change by every command there is, breaks whatever takes part at random, and
// compares the tables with Redis. It does so with a Redis behind Sentinels, and with a Redis Cluster, whose slots move meanwhile.
//
//	make chaos-capture CHAOS_TIME=30m     # CHAOS_SEED=N replays a schedule of faults; CHAOS_TOPOLOGY=cluster: that one
//
// What the tables must hold, Redis itself says in the end: nothing is expected of a write, and it may fail.
package capture

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
