package source

import (
	"flag"
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	checks := "20"
	if testsupport.Long {
		checks = "200"
	}
	if err := flag.Set("rapid.checks", checks); err != nil { // an option on the command line comes later, and wins
		panic(err)
	}
	testsupport.Main(m)
}
