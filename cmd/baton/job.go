package main

import (
	"errors"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newJobCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Look at jobs, and drive them",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newJobListCommand(e), newJobShowCommand(e), newJobNextCommand(e), newJobRunCommand(e), newJobLogsCommand(e), newJobHistoryCommand(e), newJobCancelCommand(e), newJobPauseCommand(e), newJobResumeCommand(e), newJobPreviewCommand(e))
	return cmd
}

// jobError gives an error about jobs its exit code.
func jobError(err error) error {
	if errors.Is(err, daemon.ErrNoJob) {
		return usageError(err)
	}
	return err
}
