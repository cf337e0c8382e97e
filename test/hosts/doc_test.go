// Package hosts tests baton where it runs: the built package, installed in small
// hosts with a real systemd, over a network of their own.
//
//	make test-systemd                          # all of it, as root or by sudo
//	make test-systemd SYSTEMD_RUN=TestUpgrade  # one
//
// A site is a lab with a Redis, perhaps a PostgreSQL, and hosts that have the package.
//
// # The network
//
// TestNetworkFaultsBreakNoPromise (network) breaks the ways between hosts, Redis and
// database: each fault of a list (faults), or, as make chaos-network, what it draws from
// CHAOS_SEED. Jobs of every sort run meanwhile, and a writer knows what Redis has
// acknowledged (scene). Then it is gathered what commands wrote down, what came into the
// database, who committed it and when, and what the history says (evidence), held against
// the promises 1 to 5 (judge), and told fault by fault (report):
//
//	lasted   how long it was broken       without  nobody acted as leader
//	packets  dropped or delayed           back     the longest until a leader acted, after its end
//	moves    terms that began             lost,    of increments and rows written from its
//	                                      twice    beginning to that of the next
//	slots    of two jobs, that were started and that were not
package hosts

import (
	"testing"

	lab "baton/internal/testsupport/hosts"
)

func TestMain(m *testing.M) { lab.Main(m, printFigures) }
