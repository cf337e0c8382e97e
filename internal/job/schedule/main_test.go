package schedule_test

import (
	"flag"
	"os"
	"testing"
)

// The default of rapid is more checks, but each check here walks through a year minute by minute.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil { // a flag on the command line is read later, and has priority
		panic(err)
	}
	os.Exit(m.Run())
}
