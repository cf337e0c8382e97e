// Package races is run with the race detector.
package races

import (
	"testing"

	"baton/internal/testsupport/ranout"
)

func race() {
	n, ended := 0, make(chan struct{})
	go func() { n++; close(ended) }()
	n++
	<-ended
}

func TestWaits(t *testing.T) { ranout.Fatal(t, "rain", "waited a minute in vain for rain") }

func TestRacesAndWaits(t *testing.T) {
	race()
	ranout.Fatal(t, "rain", "waited a minute in vain for rain")
}
