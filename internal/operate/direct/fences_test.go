package direct

import (
	"strings"
	"testing"
	"time"
)

func TestFencesAreNotResetByAClockThatMayBeWrong(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, apart := range []time.Duration{-23 * time.Hour, 0, 23 * time.Hour} {
		if err := clocksAgree(now.Add(apart), now); err != nil {
			t.Errorf("%v apart: %v", apart, err)
		}
	}
	for _, apart := range []time.Duration{-31 * 24 * time.Hour, 25 * time.Hour} {
		if err := clocksAgree(now.Add(apart), now); err == nil || !strings.Contains(err.Error(), "correct the wrong clock first") {
			t.Errorf("%v apart: %v; want what to do", apart, err)
		}
	}
}
