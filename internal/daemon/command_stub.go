package daemon

import (
	"context"
	"errors"

	"baton/internal/elector"
	"baton/internal/job"
)

func (t task) command(*elector.Term) job.Func {
	return func(context.Context, job.Run) (job.Result, error) {
		return job.Result{}, errors.New("commands are not wired yet")
	}
}
