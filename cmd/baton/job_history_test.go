package main

import (
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

func TestHistoryTellsTheSlotOfARunThatBeganLater(t *testing.T) {
	slot := time.Date(2026, 11, 22, 1, 34, 50, 0, time.UTC)
	run := func(late time.Duration, trigger, why string) operate.Entry {
		r := diagnose.Run{Trigger: trigger, State: "succeeded", Slot: slot, Started: slot.Add(late), Error: why}
		return operate.Entry{Run: &r}
	}
	var out strings.Builder
	entries := []operate.Entry{run(23*time.Second, "catch_up", ""), run(9*time.Second, "retry", "exit code 3"), run(20*time.Millisecond, "schedule", "")}
	if err := printHistory(&out, "report", entries, time.FixedZone("IST", 19800), true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"for the slot of 2026-11-22 07:04:50", "for the slot of 2026-11-22 07:04:50: exit code 3", "  -"} {
		if !strings.HasSuffix(lines[i+1], want) {
			t.Errorf("%q, want it to end with %q", lines[i+1], want)
		}
	}
}
