package cluster

import (
	"testing"

	"baton/internal/testsupport"
)

// build builds baton once per process. It is a package variable, because a test binary has many test functions and no other place for a
// shared value.
var build = testsupport.Program("baton/cmd/baton", "-ldflags", "-X main.version=test")

// Build returns the path of the program baton, built from this source tree. Only the first call builds the program.
func Build(t testing.TB) string {
	t.Helper()
	return build(t)
}
