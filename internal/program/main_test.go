package program

import (
	"os"
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	// A warden under the race detector would live on for a second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testsupport.Main(m)
}
