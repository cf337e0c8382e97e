package jobcmd

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

// whichJobs selects all jobs if the flag --all is given, otherwise the job that the only argument names.
type whichJobs struct{ all bool }

func (j *whichJobs) addFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.all, "all", false, "all jobs")
	cmd.Args = cmdline.AtMostOneArg
}

// name returns the name of the job, or "" for all jobs.
func (j *whichJobs) name(cmd *cobra.Command, e cmdline.Env, args []string) (string, error) {
	switch {
	case j.all && len(args) > 0:
		return "", cmdline.UsageError(fmt.Errorf("say either %s or --all", args[0]))
	case j.all:
		return "", nil
	case len(args) == 0:
		return "", cmdline.UsageError(cmdline.SayWhich(", or --all", cmdline.NamesOfJobs(cmd, e)))
	case args[0] == "":
		return "", cmdline.UsageError(errors.New("the job's name is empty"))
	}
	return args[0], nil
}

func newJobPauseCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason string
	var jobs whichJobs
	var ends pauseEnd
	cmd := &cobra.Command{
		Use:   "pause JOB | --all",
		Short: "Pause a job, or all, for a while or until job resume",
		Long: "Pause a job: its slots are missed until `baton job resume`, or until the time\n" +
			"of --for or --until, under every leader. The changes of a flush wait in Redis.\n" +
			"A run in progress may finish, but a run of an @always job is ended. With --all\n" +
			"no job runs; a job that was also paused alone stays paused after that\n" +
			"pause.\n\n" +
			"--until accepts 2006-01-02T15:04:05Z, '2006-01-02 15:04' or 15:04; the last\n" +
			"two are in the job's time zone.",
		Example: "  baton job pause users --reason 'new column'\n  baton job pause report --for 2h\n" +
			"  baton job pause --all --until 06:30 --reason 'restore of main'",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := jobs.name(cmd, e, args)
			if err == nil {
				err = ends.check(cmd)
			}
			if err != nil {
				return err
			}
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				until, err := ends.at(r.Zone(cmd.Context(), name), time.Now())
				if err != nil {
					return cmdline.UsageError(err)
				}
				o := operate.Order{Kind: operate.KindPauseJob, By: cmdline.UserName(), Reason: reason, Job: name, Until: until}
				done, err := r.Do(cmd.Context(), o)
				if err != nil {
					return cmdline.JobError(err)
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error { return printJobPause(w, o, done) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	jobs.addFlag(cmd)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	ends.addFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown with the pause")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printJobPause(w io.Writer, o operate.Order, done operate.Outcome) error {
	end := ""
	if !o.Until.IsZero() {
		end = ", until " + show.Moment(o.Until)
	}
	who, is, was := fmt.Sprintf("job %q", o.Job), "is", "was"
	if o.Job == "" {
		who, is, was = "all jobs", "are", "were"
	}
	if done.Was != nil {
		return show.Say(w, "%s %s paused already, %s; the reason is now: %s%s\n", who, was, done.Was.Reason, o.Signature(), end)
	}
	return show.Say(w, "%s %s paused %s%s\n", who, is, o.Signature(), end)
}

func newJobResumeCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var jobs whichJobs
	cmd := &cobra.Command{
		Use:   "resume JOB | --all",
		Short: "End the pause of a job, or that of all",
		Long: "End the pause of a job: the job runs at its next slot, and an @always job runs\n" +
			"at once. Slots that passed during the pause are not run. --all ends the pause\n" +
			"of all jobs; a job that was also paused alone stays paused. Without a pause\n" +
			"the command does nothing.",
		Example: "  baton job resume users\n  baton job resume users && baton job run users --watch\n  baton job resume --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := jobs.name(cmd, e, args)
			if err != nil {
				return err
			}
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				done, err := r.Do(cmd.Context(), operate.Order{Kind: operate.KindResumeJob, By: cmdline.UserName(), Job: name})
				if err != nil {
					return cmdline.JobError(err)
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error { return printJobResume(w, name, done) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	jobs.addFlag(cmd)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printJobResume(w io.Writer, job string, p operate.Outcome) error {
	who, is, was, it := fmt.Sprintf("job %q", job), "is", "was", "it was"
	if job == "" {
		who, is, was, it = "all jobs", "are", "were", "they were"
	}
	what := fmt.Sprintf("%s %s not paused", who, was)
	if p.Was != nil {
		what = fmt.Sprintf("%s %s resumed; %s paused %s, for %s", who, is, it, p.Was.Reason, text.Duration(time.Since(p.Was.Since)))
	}
	if p.Still != nil {
		what += fmt.Sprintf("; but all jobs are paused %s; baton job resume --all ends the pause", p.Still.Reason)
	}
	return show.Say(w, "%s\n", what)
}
