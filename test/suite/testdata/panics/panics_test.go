package panics

import (
	"testing"

	"baton/internal/testsupport/ranout"
)

func TestWaits(t *testing.T) { ranout.Fatal(t, "rain", "waited a minute in vain for rain") }

func TestPanics(t *testing.T) {
	defer func() { panic("an umbrella is missing") }()
	ranout.Fatal(t, "rain", "waited a minute in vain for rain")
}
