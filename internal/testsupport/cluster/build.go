package cluster

import (
	"testing"

	"baton/internal/testsupport"
)

// build is a variable of the package because a test binary has one process and many
// entry points.
var build = testsupport.Program("baton/cmd/baton", "-ldflags", "-X main.version=test")

// Build returns the path of the program, built from this source tree the first time
// that a test asks for it.
func Build(t testing.TB) string {
	t.Helper()
	return build(t)
}
