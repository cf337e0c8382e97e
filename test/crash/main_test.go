// Package crash_test proves that a flush is exactly once. It makes a matrix of
// every step that the protocol names (package flush, the sources, the database
// side), for every source and every database, and at each step, each by itself,
//
//	kills the process, with SIGKILL                   kill_test.go
//	cuts the connection to Redis or to the database   cut_test.go
//	or loses the next reply on it
//	freezes the leader until it has been deposed      deposed_test.go
//	writes more                                       write_test.go
//
// mixes all of that in random schedules,                  schedule_test.go
// and, of two whole nodes, freezes the leading process    daemon_test.go
//
// More is written meanwhile. Then somebody finishes, and the table must hold the
// sum of all increments and the last state of every hash, no row that is gone,
// and one dead letter for each record that does not fit.
//
// `make test` has the trials and the databases take turns at the steps; `make crash` and CI try all
// there is.
// The matrix is generated from the lists of steps. A step that nobody comes by
// fails it, so that a new one cannot be left out.
package crash_test

import (
	"flag"
	"os"
	"testing"

	"baton/internal/testsupport"
)

// The test binary is also the program of the processes that it kills.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "4", "rapid.steps": "12"} { // the command line goes over it
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	if text := os.Getenv(workerEnv); text != "" {
		os.Exit(work(text))
	}
	if path := os.Getenv(daemonEnv); path != "" {
		os.Exit(runDaemon(path))
	}
	testsupport.AtOnce(4)
	testsupport.Main(m)
}
