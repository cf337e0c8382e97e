package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// punctual returns a job with a slot every ten minutes that is late five minutes after a slot.
func punctual() config.Job {
	u := users()
	u.LateAfter = 5 * time.Minute
	return u
}

func TestALateJobIsToldOnceUntilItSucceeds(t *testing.T) {
	during(t, noteConfig(punctual()), func(r *notesRig) { // synctest begins at midnight, so the slots are at :10, :20...
		time.Sleep(14 * time.Minute)
		r.want("four minutes after the slot", "")
		time.Sleep(time.Minute + 2*lateEvery)
		e := r.take()
		if len(e) != 1 || e[0].Kind != "late" || e[0].Reason != string(diagnose.LateNoSuccess) || e[0].Slot.Minute() != 10 || e[0].Epoch != 7 {
			t.Errorf("five minutes after it: %+v", e)
		}
		time.Sleep(5 * time.Hour)
		r.want("hours later", "")
		r.runs(job.StateSucceeded)
		r.want("a success", "recovered users")
		time.Sleep(9 * time.Minute)
		r.want("before the next slot is late", "")
		time.Sleep(2 * time.Minute)
		r.want("the next slot", "late users")
	})
}

func TestWhoeverSucceedsIsNotLate(t *testing.T) {
	during(t, noteConfig(punctual()), func(r *notesRig) {
		time.Sleep(14 * time.Minute)
		for range 20 {
			r.runs(job.StateSucceeded)
			time.Sleep(10 * time.Minute)
		}
		r.want("runs of four minutes", "")
	})
}

// TestTheLedgerIsAskedBeforeAJobIsCalledLate checks that the ledger is read first, because it contains successes of other leaders and
// pauses by operators.
func TestTheLedgerIsAskedBeforeAJobIsCalledLate(t *testing.T) {
	during(t, noteConfig(punctual()), func(r *notesRig) {
		r.past.set(redisledger.JobState{Paused: &redisledger.JobPause{}}, nil)
		time.Sleep(5*time.Hour + time.Minute)
		r.Missed(job.Missed{Job: "users", Reason: job.ReasonPaused, Count: 1, Slot: time.Now().Add(-time.Minute)})
		r.want("a pause", "")
		began := time.Now().Add(-5*time.Hour - time.Minute)
		r.past.set(redisledger.JobState{Pauses: []redisledger.TimeRange{{From: began, To: time.Now()}}}, nil)
		time.Sleep(6 * time.Minute)
		r.want("just after the pause", "")
		time.Sleep(9 * time.Minute)
		r.want("after the first slot since the pause", "late users")
		r.runs(job.StateSucceeded)
		r.take()
		time.Sleep(8 * time.Minute)
		r.past.set(redisledger.JobState{LastSuccess: time.Now()}, nil)
		time.Sleep(2 * time.Minute)
		r.want("a success that only the ledger knows", "")
	})
}

func TestTheNextLeaderDoesNotRepeatThatAJobIsLate(t *testing.T) {
	for _, c := range []struct {
		what    string
		success time.Duration // the time before the term
		events  func(now time.Time) []redislock.Event
		want    string
	}{
		{"the leader before has told it", 3 * time.Hour, func(now time.Time) []redislock.Event {
			return []redislock.Event{{Event: "won"}, {Event: "released", At: now.Add(-time.Minute)}}
		}, ""},
		{"it became late while no node led", 3 * time.Hour, func(now time.Time) []redislock.Event {
			return []redislock.Event{{Event: "won"}, {Event: "released", At: now.Add(-170 * time.Minute)}}
		}, "late users"},
		{"the leader before has crashed", 3 * time.Hour, func(time.Time) []redislock.Event {
			return []redislock.Event{{Event: "won"}, {Event: "won"}}
		}, "late users"},
		{"it is not late yet", time.Minute, func(now time.Time) []redislock.Event {
			return []redislock.Event{{Event: "won"}, {Event: "released", At: now}}
		}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(5 * time.Hour)
			now := time.Now()
			r := newNotesRig(t, noteConfig(punctual()))
			r.past.states["users"] = redisledger.JobState{LastSuccess: now.Add(-c.success)}
			r.past.events = c.events(now)
			end := r.leads()
			var late string
			for _, e := range r.take() {
				if e.Kind != "leader_changed" {
					late += string(e.Kind) + " " + e.Job
				}
			}
			if late != c.want {
				t.Errorf("%s: %q, want %q", c.what, late, c.want)
			}
			if c.success > time.Hour {
				r.runs(job.StateSucceeded)
				r.want(c.what+", a success", "recovered users")
			}
			end()
			r.Close(t.Context())
		})
	}
}

func TestAFlushThatIsBehindIsLate(t *testing.T) {
	always := punctual()
	always.Schedule, always.Command = "@always", nil
	during(t, noteConfig(always), func(r *notesRig) {
		r.Lagged("users", 4*time.Minute)
		time.Sleep(2 * lateEvery)
		r.want("four minutes behind", "")
		r.Lagged("users", 6*time.Minute)
		time.Sleep(2 * lateEvery)
		e := r.take()
		if len(e) != 1 || e[0].Kind != "late" || e[0].Reason != string(diagnose.LateLag) || !e[0].Slot.IsZero() {
			t.Errorf("six minutes behind: %+v", e)
		}
		for range 10 { // near the limit the job has not recovered, and is also not late again
			r.Lagged("users", 4*time.Minute)
			time.Sleep(lateEvery)
			r.Lagged("users", 6*time.Minute)
			time.Sleep(lateEvery)
		}
		r.want("around the limit", "")
		r.Lagged("users", 2*time.Minute)
		r.want("two minutes behind", "recovered users")
		r.past.set(redisledger.JobState{Paused: &redisledger.JobPause{}}, nil)
		r.Lagged("users", time.Hour)
		time.Sleep(time.Hour)
		r.want("a pause", "")
	})
}

// TestAJobThatRunsAllTheTimeRecoversByRunning checks a job that never succeeds because it never ends. It counts as recovered when it has
// run for a while.
func TestAJobThatRunsAllTheTimeRecoversByRunning(t *testing.T) {
	always := users()
	always.Schedule = "@always"
	during(t, noteConfig(always), func(r *notesRig) {
		r.runs(job.StateFailed)
		r.want("a failure", "failed users")
		running := redisledger.OpenRun{Record: job.Record{Started: time.Now()}}
		r.past.set(redisledger.JobState{Running: []redisledger.OpenRun{running}}, nil)
		time.Sleep(4 * time.Minute)
		r.want("soon after", "")
		time.Sleep(2 * time.Minute)
		r.want("five minutes later", "recovered users")
		time.Sleep(time.Hour)
		r.want("an hour later", "")
		r.runs(job.StateFailed)
		r.past.set(redisledger.JobState{Paused: &redisledger.JobPause{}}, nil)
		time.Sleep(time.Hour)
		r.want("a failure that pauses it", "failed users")
	})
}

func TestWithoutLateAfterNothingIsLate(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		r.Lagged("users", 24*time.Hour)
		time.Sleep(24 * time.Hour)
		r.want("a day", "")
	})
}
