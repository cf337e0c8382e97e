package leaks

import (
	"fmt"
	"os"
	"testing"

	"baton/internal/testsupport/ranout"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Fprintln(os.Stderr, "testsupport: a process is left")
	os.Exit(code)
}

func TestWaits(t *testing.T) { ranout.Fatal(t, "rain", "waited a minute in vain for rain") }
