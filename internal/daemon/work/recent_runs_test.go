package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
	"baton/internal/text"
)

// recentsRig returns the memory of a lock's latest runs, and the Redis of this lock.
func recentsRig(t *testing.T) (*testsupport.Redis, *RecentRuns) {
	t.Helper()
	server := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: server.URL()})
	server.Client(t).Do("SET", "baton", "a")
	return server, NewRecentRuns("baton", redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: "baton"}))
}

// ran records a run of a job in the n-th minute.
func ran(t *testing.T, l *redisledger.Ledger, name string, minute int, state job.State, output string) {
	t.Helper()
	slot := time.Date(2026, 11, 21, 8, minute, 0, 0, time.UTC)
	r := job.Run{
		ID: fmt.Sprintf("%s-%d", name, minute), Job: name, Slot: slot, Trigger: job.TriggerSchedule, Attempt: 1,
		Term: job.Term{NodeID: "db1", Owner: "a", Epoch: 7},
	}
	if err := l.Claim(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	rec := job.Record{
		Run: r, State: state, Started: slot, Finished: slot.Add(1500 * time.Millisecond),
		Result: job.Result{Rows: 5, Output: output},
	}
	if err := l.Finish(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

func states(runs []operate.Brief) string {
	var all []string
	for _, r := range runs {
		all = append(all, r.State)
	}
	return strings.Join(all, " ")
}

func TestLatestRunsAreReadOnFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	server, b := recentsRig(t)
	get := func() map[string][]operate.Brief {
		t.Helper()
		all := map[string][]operate.Brief{}
		if err := b.Add(t.Context(), all, []string{"report", "views"}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	ran(t, b.ledger, "report", 1, job.StateSucceeded, "fine\n")
	ran(t, b.ledger, "report", 2, job.StateFailed, "reading…\nno such host\n \n")
	all := get()
	if got := states(all["report"]); got != "succeeded failed" || len(all["views"]) != 0 {
		t.Fatalf("%+v", all)
	}
	if last := all["report"][1]; last.Line != "no such host" || last.Duration != 1500*text.Millisecond || last.Rows != 5 || last.RunID != "report-2" ||
		last.NodeID != "db1" || last.ID == "" || all["report"][0].Line != "" {
		t.Errorf("%+v", all["report"])
	}
	for minute := 3; minute < 40; minute++ {
		ran(t, b.ledger, "report", minute, job.StateSucceeded, "")
	}
	if got := states(get()["report"]); got != "succeeded failed" {
		t.Errorf("Redis was asked again at once: %q", got)
	}
	b.read = time.Time{}
	if runs := get()["report"]; len(runs) != operate.MostRecent || runs[0].RunID != "report-10" || runs[29].RunID != "report-39" {
		t.Errorf("%d runs: %+v", len(runs), runs)
	}

	// Redis has lost its data, and the memory shows this after a while.
	server.Client(t).Do("DEL", "{baton}:job:report", "{baton}:job:report:runs")
	b.read, b.all = time.Time{}, time.Now().Add(-recentRunsReread-time.Second)
	if runs := get()["report"]; len(runs) != 0 {
		t.Errorf("after the loss: %d runs", len(runs))
	}
}

func TestARedisThatHangsLeavesTheRunsThatAreKnown(t *testing.T) {
	t.Parallel()
	server, b := recentsRig(t)
	ran(t, b.ledger, "report", 1, job.StateSucceeded, "")
	all := map[string][]operate.Brief{}
	if err := b.Add(t.Context(), all, []string{"report"}); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Thaw()
	b.read = time.Time{}
	clear(all)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := b.Add(ctx, all, []string{"report"}); err == nil || states(all["report"]) != "succeeded" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAnEntryThatHasGrownTakesThePlaceOfItsFormerSelf(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	missed := func(entry string, n int) redisledger.HistoryEntry {
		return redisledger.HistoryEntry{Entry: entry, Missed: &job.Missed{First: at, Count: n}}
	}
	run := func(entry, id string, state job.State) redisledger.HistoryEntry {
		return redisledger.HistoryEntry{Entry: entry, Record: job.Record{Run: job.Run{ID: id}, State: state}}
	}
	older := []redisledger.HistoryEntry{
		missed("5-0", 1), run("4-0", "x", job.StateLost), run("3-0", "y", job.StateSucceeded), missed("2-0", 0),
	}
	newer := []redisledger.HistoryEntry{run("7-0", "x", job.StateSucceeded), missed("6-0", 2)}
	var got []string
	for _, b := range (recentJob{entries: joined(newer, older)}).briefs() {
		got = append(got, fmt.Sprintf("%s %s %d", b.ID, b.State, b.Count))
	}
	if want := "3-0 succeeded 0, 6-0 missed 2, 7-0 succeeded 0"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", strings.Join(got, ", "), want)
	}
}
