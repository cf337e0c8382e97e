package daemon

import (
	"os"
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(4)
	// Under the race detector a warden would otherwise live for a second after its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testsupport.Main(m)
}
