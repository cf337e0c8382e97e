package jobcmd

import (
	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
)

// New returns the command "baton job".
func New(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:     "job",
		Aliases: []string{"jobs"},
		Short:   "Show jobs, and give orders for them",
		Example: "  baton job list\n  baton job show users\n  baton job run users --watch",
	}, newJobListCommand(e), newJobShowCommand(e), newJobNextCommand(e), newJobRunCommand(e), newJobLogsCommand(e), newJobHistoryCommand(e),
		newJobCancelCommand(e), newJobPauseCommand(e), newJobResumeCommand(e), newJobPreviewCommand(e), newJobAcceptCommand(e),
		newJobVerifyCommand(e), newJobBackfillCommand(e))
}
