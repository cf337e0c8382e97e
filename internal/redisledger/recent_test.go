package redisledger

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/job"
)

// inShort returns the recent entries of a job as a text: the states, the newest first.
func inShort(r Recent) string {
	var parts []string
	if r.Idle != nil {
		parts = append(parts, fmt.Sprintf("idle×%d", r.Idle.Idle.Runs))
	}
	for _, e := range r.Entries {
		parts = append(parts, string(e.State))
	}
	return strings.Join(parts, " ")
}

func TestTheLatestRunsOfManyJobsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	g, l := ledgerRig(t)
	var jobs []RecentOf
	for n := range 60 { // the jobs need three scripts
		name := fmt.Sprintf("job-%d", n)
		jobs = append(jobs, RecentOf{Job: name})
		for minute := range n % 5 {
			r := newRun(fmt.Sprintf("%s-%d", name, minute), minute, "a")
			r.Job = name
			claim(t, l, r)
			rec := ended(r, job.StateSucceeded, "")
			if minute == 3 {
				rec = ended(r, job.StateFailed, "exit code 3")
				rec.Result.Output = strings.Repeat("x", 2000) + "\nno such host\n"
			}
			finish(t, l, rec)
		}
	}
	g.Do("XADD", l.keys.Runs("job-0"), "*", "v", "0") // an entry of another version or program
	got, err := l.Recent(t.Context(), jobs, 3)
	if err != nil || len(got) != 60 {
		t.Fatalf("%d jobs, %v", len(got), err)
	}
	for n, want := range []string{"", "succeeded", "succeeded succeeded", "succeeded succeeded succeeded", "failed succeeded succeeded"} {
		for at := n; at < 60; at += 5 {
			if short := inShort(got[at]); short != want {
				t.Errorf("job-%d: %q, want %q", at, short, want)
			}
		}
	}
	last := got[4].Entries[0]
	if last.ID != "job-4-3" || last.Error != "" || !strings.HasSuffix(last.Result.Output, "\nno such host\n") ||
		len(last.Result.Output) != recentTail || last.Result.Rows != 12 || last.Term.NodeID != "node-a" || *last.Result.ExitCode != 3 ||
		last.Finished.Sub(last.Started).Seconds() != 2 || last.Entry == "" {
		t.Errorf("%+v", last)
	}

	// After that, Recent reads only new entries.
	r := newRun("new", 9, "a")
	r.Job = "job-4"
	claim(t, l, r)
	finish(t, l, ended(r, job.StateTimedOut, ""))
	news, err := l.Recent(t.Context(), []RecentOf{{"job-4", last.Entry}, {"job-3", got[3].Entries[0].Entry}}, 3)
	if err != nil || inShort(news[0]) != "timed_out" || inShort(news[1]) != "" {
		t.Errorf("%+v, %v", news, err)
	}
}

func TestRunsThatFindNothingToDoAreRecent(t *testing.T) {
	t.Parallel()
	_, l := ledgerRig(t)
	claim(t, l, newRun("first", 1, "a"))
	finish(t, l, ended(newRun("first", 1, "a"), job.StateSucceeded, ""))
	for minute := 2; minute < 5; minute++ {
		claimIdle(t, l, idleRun(fmt.Sprint(minute), minute, "a"))
	}
	got, err := l.Recent(t.Context(), []RecentOf{{Job: "users"}}, 30)
	if err != nil || inShort(got[0]) != "idle×3 succeeded" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = l.Recent(t.Context(), []RecentOf{{"users", got[0].Entries[0].Entry}}, 30)
	if err != nil || inShort(got[0]) != "idle×3" {
		t.Errorf("read on: %+v, %v", got, err)
	}
}
