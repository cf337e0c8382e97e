package main

import (
	"errors"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
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
func jobError(err error) error {
	if errors.Is(err, daemon.ErrNoJob) {
		return usageError(err)
	}
	return err
}
