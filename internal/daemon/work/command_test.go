package work

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
)

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
