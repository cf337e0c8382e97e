package program

import (
	"os"
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	// Without this setting a warden with the race detector would run for another second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testsupport.Main(m)
}
