package job

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyAJumpOfTheClockIsAJump(t *testing.T) {
	for _, c := range []struct {
		wall, elapsed, by time.Duration
		jumped            bool
	}{
		{10 * time.Second, 10 * time.Second, 0, false},
		{10*time.Second + 900*time.Millisecond, 10 * time.Second, 900 * time.Millisecond, false},
		{time.Hour, 10 * time.Second, time.Hour - 10*time.Second, true},
		{-time.Hour, 10 * time.Second, -time.Hour - 10*time.Second, true},
	} {
		if by, jumped := clockJump(c.wall, c.elapsed); by != c.by || jumped != c.jumped {
			t.Errorf("%v on the wall in %v: got %v, %v; want %v, %v", c.wall, c.elapsed, by, jumped, c.by, c.jumped)
		}
	}
}

func TestLongErrorTextIsClipped(t *testing.T) {
	got := clip(strings.Repeat("ä", maxError))
	if len(got) > maxError+len("…") || !strings.HasSuffix(got, "…") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-8:])
	}
}
