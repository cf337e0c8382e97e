package exits

import (
	"os"
	"testing"

	"baton/internal/testsupport/ranout"
)

func TestWaits(t *testing.T) { ranout.Fatal(t, "rain", "waited a minute in vain for rain") }

func TestExits(*testing.T) { os.Exit(1) }
