// Package ranout is the one way in which a test says that it failed only because a declared wait
// ran out. test/suite gives such a test a second try, and no other: where a machine is busy enough,
// a minute is too short for anything. Every other failure is final.
//
// testsupport.Await and its kin end a test by Fatal; tests call those.
package ranout

import (
	"strings"
	"testing"
	"time"
)

// Attribute is the attribute (testing.T.Attr) of a test that a wait which ran out has ended. Its
// value is what the test waited for. What a test prints or logs cannot set it.
const Attribute = "baton.wait-ran-out"

// Fatal ends the test: it waited for what, which did not come, and message says so. A test that has
// failed before does not get the attribute, and neither does one in a bubble of testing/synctest:
// no load makes a wait in its fake time too short.
//
// A failure that follows, of a deferred call or of a cleanup, shows as a further line "file.go:1: …"
// of the test: test/suite takes it for final. Cleanups that only tell, print into t.Output().
func Fatal(t testing.TB, what, message string) {
	t.Helper()
	if !t.Failed() && !fake(time.Now()) {
		t.Attr(Attribute, strings.Join(strings.Fields(what), " "))
	}
	t.Fatal(message)
}

// fake reports whether now is of a bubble of testing/synctest: its time begins with the year 2000.
func fake(now time.Time) bool { return now.Year() < 2020 }
