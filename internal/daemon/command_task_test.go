package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/job"
)

// Who writes a command line may write a password into it.
func TestOfACommandOnlyTheProgramIsNamed(t *testing.T) {
	for want, j := range map[string]config.Job{
		"a shell command": {Shell: true, Command: config.Command{"mysql -phunter2 <report.sql"}},
		"mysql":           {Command: config.Command{"/usr/bin/mysql", "-phunter2"}},
	} {
		if got := (tasks.Task{Config: j}).Target(); got != want {
			t.Errorf("%q is shown as %q, want %q", j.Command, got, want)
		}
	}
}

func TestACommandThatIsKeptRunningIsWellAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lasts time.Duration
			want  int
		}{{time.Minute, 0}, {31 * time.Minute, 6}} {
			told := 0
			work := steadily(func(context.Context, job.Run) (job.Result, error) {
				time.Sleep(c.lasts)
				return job.Result{}, nil
			}, func(context.Context, job.Run) { told++ })
			_, _ = work(t.Context(), job.Run{})
			if told != c.want {
				t.Errorf("a run of %v told %d times that it is well, want %d", c.lasts, told, c.want)
			}
		}
	})
}
