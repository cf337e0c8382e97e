package timesout

import (
	"testing"

	"baton/internal/testsupport/ranout"
)

func TestWaits(t *testing.T) { ranout.Fatal(t, "rain", "waited a minute in vain for rain") }

func TestHangs(*testing.T) { select {} }
