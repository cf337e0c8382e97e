package source

import (
	"testing"
	"time"
)

// Of the ids of a millisecond, the tenth comes after the ninth, and not before the second.
func TestStreamIsTrimmedBehindASlowerJobOfTheSameMillisecond(t *testing.T) {
	g := newRig(t)
	zero := time.Duration(0)
	for _, id := range []string{"5-8", "5-9", "5-10", "5-11"} {
		g.Do("XADD", "events", id, "n", 1)
	}
	g.Do("HSET", eventsPositions, "slower", "5-9 2")
	newDatabase().drain(t, g.stream(StreamOptions{Retain: &zero}))
	if got, want := g.ids(), "5-9 5-10 5-11"; got != want {
		t.Errorf("left: %s; want %s", got, want)
	}
}
