package cluster

import (
	"runtime"
	"testing"

	"baton/internal/testsupport/ranout"
)

// ended is a testing.TB that records the attribute of its failure, so that the real test does not fail.
type ended struct {
	testing.TB
	attribute string
}

func (e *ended) Helper()               {}
func (e *ended) Failed() bool          { return false }
func (e *ended) Attr(key, _ string)    { e.attribute = key }
func (e *ended) Fatal(...any)          { runtime.Goexit() }
func (e *ended) Fatalf(string, ...any) { runtime.Goexit() }

// On a very busy machine even a minute can be too short, so test/suite repeats a test that such a wait has ended.
func TestAWaitThatTimesOutIsMarked(t *testing.T) {
	e, over := &ended{TB: t}, make(chan struct{})
	go func() {
		defer close(over)
		(&Cluster{t: e}).Await(0, "rain", func() bool { return false })
	}()
	if <-over; e.attribute != ranout.Attribute {
		t.Errorf("the attribute is %q, want %q", e.attribute, ranout.Attribute)
	}
}
