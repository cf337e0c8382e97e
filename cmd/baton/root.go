package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/deadcmd"
	"baton/cmd/baton/internal/jobcmd"
	"baton/cmd/baton/internal/rowscmd"
	"baton/cmd/baton/internal/show"
	"baton/internal/config"
)

// commands returns all commands of baton, in the groups of the help text.
func commands(e cmdline.Env) []*cobra.Command {
	return slices.Concat(
		grouped(groupDaily, newStatusCommand(e), newLeaderCommand(e), newWhoCommand(e), newStepDownCommand(e),
			newPauseCommand(e), newResumeCommand(e), newReloadCommand(e)),
		grouped(groupJobs, jobcmd.New(e), deadcmd.New(e), rowscmd.New(e), newStageCommand(e), newLockCommand(e)),
		grouped(groupWrong, newExplainCommand(e), newDoctorCommand(e), newNotifyCommand(e), newFenceCommand(e), newReleaseCommand(e)),
		grouped(groupSetup, newDemoCommand(e), newConfigCommand(e), newRunCommand(e), newDrillCommand(e),
			newCompletionCommand(e), newVersionCommand(e)),
		[]*cobra.Command{newWardenCommand(), newExitCodesTopic(), newEnvironmentTopic()},
	)
}

// These are the groups of commands in the help text.
const (
	groupDaily = "daily"
	groupJobs  = "jobs"
	groupWrong = "wrong"
	groupSetup = "setup"
)

func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupDaily, Title: "Day by day:"},
		{ID: groupJobs, Title: "Jobs and their data:"},
		{ID: groupWrong, Title: "When something is wrong:"},
		{ID: groupSetup, Title: "To set it up:"},
	}
}

func grouped(group string, all ...*cobra.Command) []*cobra.Command {
	for _, cmd := range all {
		cmd.GroupID = group
	}
	return all
}

// run runs the whole program, except for the parts that only main can provide.
func run(ctx context.Context, e cmdline.Env) int {
	return execute(ctx, newRootCommand(e), e.Stderr)
}

// execute runs the command that root finds in its arguments, prints an error once, and returns the exit code.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmdline.GroupError(cmd.ValidateFlagGroups()) // cobra itself checks too late, and the error would count as a failure
		started = err == nil
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cmdline.ExitOK
	}
	code := cmdline.ExitFailure
	coded, ok := errors.AsType[*cmdline.ExitError](err)
	if ok {
		code = coded.Code
	} else if !started { // the arguments are invalid
		code = cmdline.ExitUsage
		err = fmt.Errorf("%w\nsee %s --help", err, cmd.CommandPath())
	}
	if !ok || coded.Err != nil {
		printError(stderr, err, code == cmdline.ExitUsage)
	}
	return code
}

// helpWidth is the maximum width of help texts, in columns.
const helpWidth = 80

func newRootCommand(e cmdline.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "baton",
		Short: "Run scheduled jobs on one of many hosts",
		Long: "baton runs on every host. One host holds the baton, a lock in Redis, and runs\n" +
			"the scheduled jobs: it flushes Redis data into a SQL database. The others\n" +
			"stand by and take over by themselves.",
		Example: "  baton demo                      # see it at work, on this machine\n" +
			"  baton status --watch            # who leads, and is data late?\n" +
			"  baton explain                   # why does this node not lead?\n" +
			"  baton job run users --watch     # run a job now\n" +
			"  baton help exit-codes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(e.Args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.AddGroup(groups()...)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.SetHelpCommandGroupID(groupSetup)
	show.AddColourFlag(root)
	addVersionFlag(root)
	root.AddCommand(commands(e)...)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = cmdline.Topic
	}
	return root
}

// printError writes "baton: " and the error. If a configuration has several problems, each problem gets its own line. The line begins with
// the problem's place, so that editors can jump to it. Errors other than usage errors may contain texts from outside, whose lines must not
// look like other messages.
func printError(w io.Writer, err error, usage bool) {
	if problems, ok := errors.AsType[config.Problems](err); ok && len(problems) > 1 {
		_ = show.Say(w, "baton: %d problems in the configuration:\n%s\n", len(problems), show.LinesOf(err.Error()))
		return
	}
	text := string(show.LinesOf(err.Error()))
	if !usage {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\t", " "), "\n", "\n  ")
	}
	_ = show.Say(w, "baton: %s\n", show.SafeText(text))
}

func newEnvironmentTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Which environment variables baton reads",
		Long:  environmentHelp(),
	}
}
