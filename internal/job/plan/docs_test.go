package plan

import (
	"os"
	"strings"
	"testing"
	"time"
)

// row returns the text of docs/jobs.md in a row of its table "What happens when".
func row(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n| "+begins+" | ")
	if !found {
		t.Fatalf("docs/jobs.md has no row %q", begins)
	}
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// The documentation has a phrase for each policy, and the code does what the phrase says.
func TestOverlapIsAsDocumented(t *testing.T) {
	text := row(t, "a slot is due while a run is in progress")
	documented := map[Overlap]struct {
		phrase string
		want   OverlapDecision
	}{
		OverlapForbid:   {"`forbid` skips the slot", OverlapDecision{}},
		OverlapQueueOne: {"`queue_one` runs the latest due slot after the run", OverlapDecision{Wait: true}},
		OverlapReplace:  {"`replace` ends the run and starts the slot", OverlapDecision{Wait: true, Cancel: true}},
		OverlapAllow:    {"`allow` (commands only) starts the slot beside the run", OverlapDecision{Begin: true}},
	}
	if n := strings.Count(text, "`") / 2; n != len(documented)+2 { // and the names of overlap and max_overlap
		t.Errorf("the row names %d words, of which %d are policies known here: %s", n, len(documented), text)
	}
	for policy := range overlapDecisions {
		if _, ok := documented[policy]; !ok {
			t.Errorf("%s is not documented", policy)
		}
	}
	for policy, d := range documented {
		if !strings.Contains(text, d.phrase) {
			t.Errorf("docs/jobs.md does not say %q: %s", d.phrase, text)
		}
		if got := policy.Decide(Due{}); got != d.want {
			t.Errorf("%s: got %+v, want %+v", policy, got, d.want)
		}
		if got := policy.Decide(Due{Forced: true}); !got.Begin {
			t.Errorf("%s, forced: got %+v", policy, got)
		}
		if got := policy.Decide(Due{InTurn: true}); got != (OverlapDecision{Wait: true}) {
			t.Errorf("%s, in turn: got %+v", policy, got)
		}
		if got := policy.Decide(Due{Rerun: true}); got.Begin != (policy == OverlapAllow) || got.Cancel || got.Begin == got.Wait {
			t.Errorf("%s, a lost run: got %+v", policy, got)
		}
	}
	if !strings.Contains(text, "unless `max_overlap` runs are already in progress") {
		t.Errorf("docs/jobs.md does not say what max_overlap does: %s", text)
	}
	for policy := range documented {
		for _, d := range []struct {
			due  Due
			want OverlapDecision // with OverlapAllow; the other policies are tested without a limit
		}{
			{Due{GoingOn: 9}, OverlapDecision{Begin: true}},
			{Due{GoingOn: 1, Most: 2}, OverlapDecision{Begin: true}},
			{Due{GoingOn: 2, Most: 2}, OverlapDecision{}},
			{Due{GoingOn: 3, Most: 2}, OverlapDecision{}}, // the limit was lowered
			{Due{GoingOn: 2, Most: 2, Forced: true}, OverlapDecision{Begin: true}},
			{Due{GoingOn: 2, Most: 2, InTurn: true}, OverlapDecision{Wait: true}},
			{Due{GoingOn: 2, Most: 2, Rerun: true}, OverlapDecision{Wait: true}},
		} {
			want := d.want
			if policy != OverlapAllow {
				want = policy.Decide(Due{Forced: d.due.Forced, InTurn: d.due.InTurn, Rerun: d.due.Rerun})
			}
			if got := policy.Decide(d.due); got != want {
				t.Errorf("%s, %+v: got %+v, want %+v", policy, d.due, got, want)
			}
		}
	}
	if got := Overlap("").Decide(Due{}); got != overlapDecisions[OverlapForbid] {
		t.Errorf("not set: got %+v, want that of forbid", got)
	}
}

func TestCatchUpIsAsDocumented(t *testing.T) {
	text := row(t, "no node led at the time of a slot")
	start := at(t, "13:30:00")
	for policy, d := range map[CatchUp]struct {
		phrase      string
		slot        string
		inTurn      int
		missed, old int // old: with a deadline that all slots have passed
	}{
		CatchUpLatest: {"`latest` runs the last missed slot", "13:00:00", 0, 2, 3},
		CatchUpAll:    {"`all` runs each missed slot in turn", "", 3, 0, 3},
		CatchUpNone:   {"`none` runs no missed slot", "", 0, 3, 3},
	} {
		if !strings.Contains(text, d.phrase) {
			t.Errorf("docs/jobs.md does not say %q: %s", d.phrase, text)
		}
		p := Policy{Schedule: mustParse(t, "@hourly"), CatchUp: policy}
		got := AtStart(p, at(t, "10:00:00"), start, start)
		inTurn := 0
		for slot := p.Schedule.Next(got.Backlog.After); !got.Backlog.Empty() &&
			!slot.After(got.Backlog.Until); slot = p.Schedule.Next(slot) {
			inTurn++
		}
		if !got.Slot.Equal(at(t, d.slot)) || inTurn != d.inTurn || got.Missed.Count != d.missed {
			t.Errorf("%s: got slot %v, %d in turn, %d missed", policy, got.Slot, inTurn, got.Missed.Count)
		}
		p.StartingDeadline = time.Minute
		if got := AtStart(p, at(t, "10:00:00"), start, start); !got.Slot.IsZero() || !got.Backlog.Empty() || got.Missed.Count != d.old {
			t.Errorf("%s, past the deadline: got %+v", policy, got)
		}
	}
}

func TestRetryIsAsDocumented(t *testing.T) {
	text := row(t, "a run fails")
	for _, phrase := range []string{
		"If `retry` has a limit, the current leader tries the run again after `delay`",
		"The delay doubles with each attempt up to `max_delay`",
		"varies by up to a fifth", "stops retrying when the next slot is due",
	} {
		if !strings.Contains(text, phrase) {
			t.Errorf("docs/jobs.md does not say %q: %s", phrase, text)
		}
	}
	failed := at(t, "12:00:00")
	r := Retry{Limit: 4, Delay: 10 * time.Second, MaxDelay: 30 * time.Second}
	for attempt, delay := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 30 * time.Second, 4: 30 * time.Second} {
		for chance, want := range map[float64]time.Duration{0: delay * 4 / 5, 0.5: delay, 0.999999: delay * 6 / 5} {
			got := r.At(failed, attempt, time.Time{}, chance).Sub(failed)
			if got > want || want-got > time.Millisecond {
				t.Errorf("attempt %d, chance %v: after %v, want %v", attempt, chance, got, want)
			}
		}
	}
	for name, at := range map[string]time.Time{
		"beyond the limit":          r.At(failed, 5, time.Time{}, 0),
		"without a limit":           Retry{Delay: time.Second}.At(failed, 1, time.Time{}, 0),
		"when the next slot is due": r.At(failed, 1, failed.Add(10*time.Second), 0.5),
	} {
		if !at.IsZero() {
			t.Errorf("%s: tried again at %v", name, at)
		}
	}
	if got := r.At(failed, 1, failed.Add(10*time.Second+time.Millisecond), 0.5); !got.Equal(failed.Add(10 * time.Second)) {
		t.Errorf("just before the next slot: got %v", got)
	}
	if got := (Retry{Limit: 1e6, Delay: time.Hour}).At(failed, 1e6, time.Time{}, 0); got.Before(failed) {
		t.Errorf("the delay has overflowed: %v", got)
	}
}

// The test checks the decision about a slot that is to be run again. Each case is described by docs/jobs.md in the rows of retry and
// on_lost.
func TestFateOfASlotIsAsDocumented(t *testing.T) {
	lost := row(t, "the leader dies during a run")
	for _, phrase := range []string{
		"With `on_lost: skip` baton does not repeat the run", "With `rerun` the next leader starts the run again",
		"If a later slot is due by then, that slot runs instead of the lost run, except with `catch_up: all`",
	} {
		if !strings.Contains(lost, phrase) {
			t.Errorf("docs/jobs.md does not say %q: %s", phrase, lost)
		}
	}
	retry, skip := RerunPolicy{Retry: Retry{Limit: 1}, OnLost: OnLostSkip}, RerunPolicy{}
	rerun, both := RerunPolicy{OnLost: OnLostRerun}, RerunPolicy{Retry: Retry{Limit: 1}, OnLost: OnLostRerun}
	for _, c := range []struct {
		name string
		of   RerunState
		// The columns are the job's settings: nothing, retry, rerun, both.
		failed, inherited, lost [4]RerunDecision
	}{
		{
			"nothing is in the way", RerunState{},
			[4]RerunDecision{Withdrawn, Pending, Withdrawn, Pending}, [4]RerunDecision{Dropped, Pending, Pending, Pending},
			[4]RerunDecision{Dropped, Dropped, First, First},
		},
		{
			"a later slot runs", RerunState{Later: true},
			[4]RerunDecision{Withdrawn, Dropped, Withdrawn, Dropped}, [4]RerunDecision{Dropped, Dropped, Dropped, Dropped},
			[4]RerunDecision{Dropped, Dropped, Dropped, Dropped},
		},
		{
			"later slots have passed", RerunState{Passed: true},
			[4]RerunDecision{Withdrawn, Pending, Withdrawn, Pending}, [4]RerunDecision{Dropped, Dropped, Pending, Pending},
			[4]RerunDecision{Dropped, Dropped, First, First},
		},
		{
			"later slots are caught up in turn", RerunState{Passed: true, Backlog: true},
			[4]RerunDecision{Withdrawn, Pending, Withdrawn, Pending}, [4]RerunDecision{Dropped, Dropped, First, First},
			[4]RerunDecision{Dropped, Dropped, First, First},
		},
		{
			"an operator has cancelled it", RerunState{Cancelled: true},
			[4]RerunDecision{Withdrawn, Withdrawn, Withdrawn, Withdrawn}, [4]RerunDecision{Dropped, Withdrawn, Withdrawn, Withdrawn},
			[4]RerunDecision{Dropped, Dropped, Withdrawn, Withdrawn},
		},
	} {
		for i, job := range []RerunPolicy{skip, retry, rerun, both} {
			got := [3]RerunDecision{job.Failed(c.of), job.Inherited(c.of), job.Lost(c.of)}
			if want := [3]RerunDecision{c.failed[i], c.inherited[i], c.lost[i]}; got != want {
				t.Errorf("%s, %+v: got %v, want %v", c.name, job, got, want)
			}
		}
	}
}
