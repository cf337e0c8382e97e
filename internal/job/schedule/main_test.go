package schedule_test

import (
	"flag"
	"os"
	"testing"
)

// Fewer than rapid tries by itself: the model of a schedule walks a year minute by minute each time.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil { // a choice of the command line's comes later, and wins
		panic(err)
	}
	os.Exit(m.Run())
}
