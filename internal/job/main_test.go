package job_test

import (
	"flag"
	"os"
	"testing"
)

// Fewer than rapid tries by itself: each of them is a term, or several, of three nodes.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil { // a choice of the command line's comes later, and wins
		panic(err)
	}
	os.Exit(m.Run())
}
