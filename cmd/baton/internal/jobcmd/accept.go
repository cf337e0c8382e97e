package jobcmd

import (
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

func newJobAcceptCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:   "accept JOB",
		Short: "Accept that the rows of a table are a job's",
		Long: "Accept the rows that a pass of a job has left alone: they were in the\n" +
			"table before, and the job never wrote them. The pass has counted how many of\n" +
			"them it would change and delete; job preview --all shows them. After that\n" +
			"every row within the pattern of the keys is the job's. The leader makes\n" +
			"another pass within a minute, which changes and deletes no more rows than were\n" +
			"counted, and no more than max_pct allows. The database of the job records it,\n" +
			"for its present table and columns; to accept that by the configuration, see\n" +
			"adopt.",
		Example: "  baton job preview users --all\n  baton job accept users",
		Args:    cmdline.OneJob(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cmdline.LoadConfig(cmd, e)
			if err != nil {
				return err
			}
			a, err := direct.AcceptJob(cmd.Context(), c, args[0], cmdline.UserName())
			if err != nil {
				return cmdline.JobError(err)
			}
			return out.Print(e.Stdout, a, func(w io.Writer) error {
				return show.Say(w, "Every row of %s in table %s is job %s's. The next pass may change %s and delete %s.\n",
					a.Keys, a.Table, a.Job, text.Count(a.Changes, "row"), text.Count(a.Deletes, "row"))
			})
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
