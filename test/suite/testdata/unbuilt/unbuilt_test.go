package unbuilt

import "testing"

func TestWaits(t *testing.T) { return 1 }
