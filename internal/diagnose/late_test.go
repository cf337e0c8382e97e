package diagnose

import (
	"testing"
	"time"
)

var midnight = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// at returns a time of the test's day, in hours after midnight.
func at(hours float64) time.Time {
	return midnight.Add(time.Duration(hours * float64(time.Hour)))
}

// nightly returns the next slot of the schedule "0 2 * * *".
func nightly(after time.Time) time.Time {
	slot := after.Truncate(24 * time.Hour).Add(2 * time.Hour)
	if !slot.After(after) {
		slot = slot.Add(24 * time.Hour)
	}
	return slot
}

// TestWhenAJobIsDueAndHowLateItIs checks a job with a slot at 02:00 at the time 05:00.
func TestWhenAJobIsDueAndHowLateItIs(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		job     Job
		past    Past
		due     time.Time
		overdue time.Duration
		late    Late // with late_after of one hour
		unset   Late // without late_after
	}{
		"nothing is known":               {job: Job{Command: true}},
		"it has succeeded since":         {job: Job{Command: true}, past: Past{LastSuccess: at(2.1)}, due: at(26)},
		"no success since its slot":      {job: Job{Command: true}, past: Past{LastSuccess: at(-20)}, due: at(2), overdue: 3 * hour, late: LateNoSuccess},
		"a flush, no success":            {past: Past{LastSuccess: at(-20)}, due: at(2), overdue: 3 * hour, late: LateNoSuccess, unset: LateNoSuccess},
		"it never succeeded":             {job: Job{Command: true}, past: Past{Begun: at(-70), Known: at(-130)}, due: at(-70), overdue: 75 * hour, late: LateNoSuccess},
		"it never ran":                   {job: Job{Command: true}, past: Past{Known: at(1)}, due: at(2), overdue: 3 * hour, late: LateNoSuccess},
		"it is new":                      {job: Job{Command: true}, past: Past{Known: at(4)}, due: at(26)},
		"it runs, and is waited for":     {job: Job{Command: true, Awaited: true}, past: Past{LastSuccess: at(-20)}, due: at(2)},
		"it was paused when it was late": {job: Job{Command: true, Paused: &Pause{Since: at(4)}}, past: Past{LastSuccess: at(-20)}, due: at(2), overdue: 2 * hour, late: LateNoSuccess},
		"it was paused in time":          {job: Job{Command: true, Paused: &Pause{Since: at(2.5)}}, past: Past{LastSuccess: at(-20)}, due: at(2), overdue: hour / 2},
		"it was paused before":           {job: Job{Command: true, Paused: &Pause{Since: at(1)}}, past: Past{LastSuccess: at(-20)}, due: at(2)},
		"its slot was in a pause":        {job: Job{Command: true}, past: Past{LastSuccess: at(-20), Paused: []Span{{at(1), at(3)}}}, due: at(26)},
		"in one of two that overlap": {job: Job{Command: true},
			past: Past{LastSuccess: at(-20), Paused: []Span{{at(25), at(27)}, {at(1), at(25.5)}}}, due: at(50)},
		"its slot was before the pause": {job: Job{Command: true}, past: Past{LastSuccess: at(-20), Paused: []Span{{at(3), at(4)}}}, due: at(2), overdue: 3 * hour, late: LateNoSuccess},
		"a flush without slots":         {job: Job{Always: true}, past: Past{LastSuccess: at(-90), Behind: at(3.5)}, due: at(3.5), overdue: 90 * time.Minute, late: LateLag, unset: LateLag},
		"one that is up to date":        {job: Job{Always: true}, past: Past{LastSuccess: at(-90)}},
		"a command that is kept going":  {job: Job{Always: true, Command: true}, past: Past{Begun: at(-90)}},
	} {
		j := c.job
		j.DueAt = j.Due(c.past, nightly)
		if !j.DueAt.Equal(c.due) || j.Overdue(at(5)) != c.overdue {
			t.Errorf("%s: due at %v, overdue for %v, want %v and %v", name, j.DueAt, j.Overdue(at(5)), c.due, c.overdue)
		}
		if got := j.IsLate(at(5)); got != c.unset {
			t.Errorf("%s, without late_after: %q, want %q", name, got, c.unset)
		}
		j.LateAfterSeconds = 3600
		if got := j.IsLate(at(5)); got != c.late {
			t.Errorf("%s: %q, want %q", name, got, c.late)
		}
		if got := j.IsLate(j.DueAt.Add(hour)); got != "" {
			t.Errorf("%s: %q after no more than late_after", name, got)
		}
	}
}

// TestDataIsLateOnlyWhereARunThatWouldHaveWrittenItIs checks that changes which wait for the next slot are not late, and that an overdue
// run without waiting changes means no late data.
func TestDataIsLateOnlyWhereARunThatWouldHaveWrittenItIs(t *testing.T) {
	for name, c := range map[string]struct {
		due  time.Time
		lag  float64
		want bool
	}{
		"since the last night":                {due: at(26), lag: 3 * 3600},
		"a run is overdue, and changes wait":  {due: at(2), lag: 3 * 3600, want: true},
		"a run is overdue, and nothing waits": {due: at(2)},
	} {
		j := Job{LateAfterSeconds: 3600, DueAt: c.due, LagSeconds: &c.lag}
		if got := j.IsDataLate(at(5)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatTheDataOfAllFlushesIs(t *testing.T) {
	waits := func(name string, lag float64, change func(*Job)) Job {
		j := Job{Name: name, LagSeconds: &lag, Backlog: new(int64(10)), DueAt: at(5).Add(-time.Duration(lag) * time.Second)}
		if change != nil {
			change(&j)
		}
		return j
	}
	fails := func(j *Job) { j.ConsecutiveFailures = 16 }
	for _, c := range []struct {
		what  string
		jobs  []Job
		state DataState
		worst string
	}{
		{"no jobs", nil, DataNoneHere, ""},
		{"commands", []Job{{Command: true}}, DataNoneHere, ""},
		{"all is written", []Job{waits("a", 3, nil), waits("b", 5, nil)}, DataFresh, "b"},
		{"one is late, another is further behind and not late yet", []Job{waits("a", 90, func(j *Job) { j.LateAfterSeconds = 3600 }), waits("b", 70, nil)}, DataLate, "b"},
		{"two are late", []Job{waits("a", 70, nil), waits("b", 90, nil), waits("c", 80, nil)}, DataLate, "b"},
		{"one fails", []Job{waits("a", 3, nil), waits("b", 1, fails)}, DataStuck, "a"},
		{"one fails, and has nothing to write", []Job{waits("a", 3, nil), waits("b", 0, func(j *Job) { fails(j); j.Backlog = new(int64(0)) })}, DataFresh, "a"},
		{"one was lost with its leader", []Job{waits("a", 3, nil), waits("b", 1, func(j *Job) {
			j.ConsecutiveFailures, j.LastRun = 1, &Run{State: "lost"}
		})}, DataFresh, "a"},
		{"one was lost and failed before", []Job{waits("b", 1, func(j *Job) {
			j.ConsecutiveFailures, j.LastRun = 2, &Run{State: "lost"}
		})}, DataStuck, "b"},
		{"one is not measured", []Job{waits("a", 3, nil), {Name: "b"}}, DataUnknown, "a"},
	} {
		d := DataOf(Snapshot{Now: at(5), Jobs: c.jobs})
		worst := ""
		if d.Worst != nil {
			worst = d.Worst.Name
		}
		if d.State != c.state || worst != c.worst {
			t.Errorf("%s: %s, worst %q, want %s, %q", c.what, d.State, worst, c.state, c.worst)
		}
	}
}

func TestALossSaysNothingOfAJobThatIsKeptRunningAgain(t *testing.T) {
	for name, c := range map[string]struct {
		job  Job
		says bool
	}{
		"lost with its leader, and runs":       {Job{Always: true, Running: &Run{}, LastRun: &Run{State: "lost"}}, false},
		"cancelled with its term, and runs":    {Job{Always: true, Running: &Run{}, LastRun: &Run{State: "cancelled"}}, false},
		"lost, and does not run yet":           {Job{Always: true, LastRun: &Run{State: "lost"}}, true},
		"failed, and runs again":               {Job{Always: true, Running: &Run{}, LastRun: &Run{State: "failed"}}, true},
		"has slots, and the next one has come": {Job{Running: &Run{}, LastRun: &Run{State: "lost"}}, true},
	} {
		if got := c.job.Ended() != nil; got != c.says {
			t.Errorf("%s: %t, want %t", name, got, c.says)
		}
	}
}
