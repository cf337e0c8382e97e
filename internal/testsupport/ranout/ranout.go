// Package ranout is the only way for a test to report that it failed because a declared wait has timed out. test/suite repeats only such a
// test, because on a very busy machine even a minute can be too short. Every other failure is final.
//
// Tests call testsupport.Await and similar functions, which end the test by Fatal.
package ranout

import (
	"strings"
	"testing"
	"time"
)

// Attribute is the attribute (testing.T.Attr) of a test that ended because a wait has timed out. Its value is the event that the test
// waited for. The test's output and log cannot set the attribute.
const Attribute = "baton.wait-ran-out"

// Fatal ends the test with message, because an event has not happened in time. The argument what names the event. A test that has failed
// before does not get the attribute. A test in a bubble of testing/synctest also does not get it, because no load makes a wait in fake time
// too short.
//
// If a deferred call or a cleanup fails later, the test prints a further line "file.go:1: …", and test/suite then considers the failure
// final. So a cleanup that only informs must print to t.Output().
func Fatal(t testing.TB, what, message string) {
	t.Helper()
	if !t.Failed() && !fake(time.Now()) {
		t.Attr(Attribute, strings.Join(strings.Fields(what), " "))
	}
	t.Fatal(message)
}

// fake reports whether now is a time in a bubble of testing/synctest, where time starts in the year 2000.
func fake(now time.Time) bool { return now.Year() < 2020 }
