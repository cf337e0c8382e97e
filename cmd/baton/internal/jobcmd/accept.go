package jobcmd

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newJobAcceptCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason string
	cmd := &cobra.Command{
		Use:   "accept JOB",
		Short: "Accept that the rows of a table belong to a job",
		Long: "Accept the rows that a pass of a job did not change, because they were in the\n" +
			"table before and the job never wrote them. `baton job preview --all` shows\n" +
			"these rows. After the command every row within the pattern of the keys belongs\n" +
			"to the job. Within a minute the leader makes another pass, which changes and\n" +
			"deletes no more rows than were counted, and no more than max_pct allows. For\n" +
			"hashes and zset a backfill or a repair counts the rows: order the backfill or\n" +
			"repair again. The setting \"adopt\" does the same in the configuration.",
		Example: "  baton job preview users --all\n  baton job accept users --reason 'the table is a copy'",
		Args:    cmdline.OneJob(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				waits, err := r.Acceptance(cmd.Context(), args[0])
				if err != nil {
					return cmdline.JobError(err)
				}
				done, err := r.Do(cmd.Context(), operate.Order{
					Kind: operate.KindAccept, By: cmdline.UserName(), Reason: reason, Job: args[0],
					Changes: waits.Changes, Deletes: waits.Deletes,
				})
				switch {
				case err != nil:
					return cmdline.JobError(err)
				case done.Code == operate.CodeNothing && (done.Acceptance == nil || done.Acceptance.State != operate.RowsAccepted):
					return errors.New(done.Text)
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error { return show.Say(w, "%s\n", done.Text) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the history")
	cmdline.JobNames(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
