// Package poison_test flushes rows of which one in a hundred is bad, in every way that
// a row can be bad, through the whole pipeline into every database, while the process
// that flushes is killed again and again. In the end the good rows are in the table,
// each once, and the bad ones are dead letters, each once and for its own reason.
package poison_test

import (
	"os"
	"testing"

	"baton/internal/testsupport"
)

// The test binary is also the program of the processes that are killed.
func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		os.Exit(work(text))
	}
	testsupport.Main(m)
}
