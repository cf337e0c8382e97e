package jobcmd

import (
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
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

func TestHistoryPutsMissedSlotsOnOneLine(t *testing.T) {
	at := func(text string) time.Time {
		got, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	code := 4
	entries := []operate.Entry{
		{Missed: &operate.Missed{Reason: "overlap", Count: 12, First: at("2026-11-22 02:00:00"), Last: at("2026-11-22 02:11:00"), NodeID: "db1", Epoch: 7}},
		{Run: &diagnose.Run{Started: at("2026-11-22 01:59:30"), Trigger: "retry", Attempt: 2, State: "failed", Duration: 1500 * text.Millisecond, ExitCode: &code, Error: "exit code 4\nand more", NodeID: "db1", Epoch: 7}},
		{Missed: &operate.Missed{Reason: "no_leader", Count: 2, First: at("2026-11-20 23:59:00"), Last: at("2026-11-21 00:00:30"), NodeID: "db1", Epoch: 7}},
		{Missed: &operate.Missed{Reason: "ledger", Count: 1, First: at("2026-11-20 12:00:00"), Last: at("2026-11-20 12:00:00"), NodeID: "db1", Epoch: 7, Error: "redis is away"}},
	}
	var out strings.Builder
	if err := printHistory(&out, "report", entries, time.UTC, true); err != nil {
		t.Fatal(err)
	}
	want := `WHEN (UTC)           TRIGGER  ATTEMPT  STATE   TOOK  EXIT  NODE  EPOCH  ERROR OR REASON
2026-11-22 02:00:00  -        -        missed  -     -     db1   7      12 slots: overlap, 02:00 … 02:11
2026-11-22 01:59:30  retry    2        failed  1.5s  4     db1   7      exit code 4
2026-11-20 23:59:00  -        -        missed  -     -     db1   7      2 slots: no_leader, 23:59:00 … 2026-11-21 00:00:30
2026-11-20 12:00:00  -        -        missed  -     -     db1   7      1 slot: ledger, 12:00: redis is away
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
