package source

import (
	"flag"
	"os"
	"testing"

	"baton/internal/testsupport"
)

// long is set by `make test-long`: what is drawn at random is drawn more often.
var long = os.Getenv("BATON_TEST_LONG") != ""

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	checks := "20"
	if long {
		checks = "200"
	}
	if err := flag.Set("rapid.checks", checks); err != nil { // a choice of the command line's comes later, and wins
		panic(err)
	}
	testsupport.Main(m)
}

// often is how often a test does what it draws at random: n times in `make test-long`, else
// a quarter of that.
func often(n int) int {
	if long {
		return n
	}
	return max(1, n/4)
}
