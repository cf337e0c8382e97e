package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

func newJobCommand(e env) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "job",
		Short:   "Look at jobs, and drive them",
		Example: "  baton job list\n  baton job show users\n  baton job run users --watch",
	}, newJobListCommand(e), newJobShowCommand(e), newJobNextCommand(e), newJobRunCommand(e), newJobLogsCommand(e), newJobHistoryCommand(e),
		newJobCancelCommand(e), newJobPauseCommand(e), newJobResumeCommand(e), newJobPreviewCommand(e))
}

// jobError gives an error about jobs its exit code.
// jobOf is how one job stands.
func jobOf(ctx context.Context, r operate.Operator, name string) (diagnose.Job, error) {
	s, err := r.Snapshot(ctx)
	if err != nil {
		return diagnose.Job{}, err
	}
	var have []string
	for _, j := range s.Jobs {
		if j.Name == name {
			return j, nil
		}
		have = append(have, j.Name)
	}
	return diagnose.Job{}, operate.NoJob(name, have)
}

func jobError(err error) error {
	if errors.Is(err, operate.ErrNoJob) {
		return usageError(err)
	}
	return err
}
