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
	"baton/cmd/baton/internal/show"
	"baton/internal/config"
)

// commands lists every command of baton, in groups as the help text has them.
func commands(e cmdline.Env) []*cobra.Command {
	return slices.Concat(
		grouped(groupDaily, newStatusCommand(e), newLeaderCommand(e), newWhoCommand(e), newStepDownCommand(e),
			newPauseCommand(e), newResumeCommand(e), newReloadCommand(e)),
		grouped(groupJobs, jobcmd.New(e), deadcmd.New(e), newStageCommand(e), newLockCommand(e)),
		grouped(groupWrong, newExplainCommand(e), newDoctorCommand(e), newNotifyCommand(e), newFenceCommand(e), newReleaseCommand(e)),
		grouped(groupSetup, newDemoCommand(e), newConfigCommand(e), newRunCommand(e), newDrillCommand(e),
			newCompletionCommand(e), newVersionCommand(e)),
		[]*cobra.Command{newWardenCommand(), newExitCodesTopic(), newEnvironmentTopic()},
	)
}

// The groups of commands.
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

// run is the whole program, apart from what only main can have.
func run(ctx context.Context, e cmdline.Env) int {
	return execute(ctx, newRootCommand(e), e.Stderr)
}

// execute runs the command that root finds in its arguments, prints an error
// once, and answers with the exit code.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmdline.GroupError(cmd.ValidateFlagGroups()) // cobra itself does so too late: it would be taken for a failure
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
	} else if !started { // the arguments were not understood
		code = cmdline.ExitUsage
		err = fmt.Errorf("%w\nsee %s --help", err, cmd.CommandPath())
	}
	if !ok || coded.Err != nil {
		printError(stderr, err, code == cmdline.ExitUsage)
	}
	return code
}

// helpWidth is how many columns help texts take at most.
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

// printError writes "baton: what happened". Several problems of a configuration
// get a line each, which begins with its place so that editors can go there. Other errors
// than of usage may hold texts from outside: no line of theirs looks like another message.
func printError(w io.Writer, err error, usage bool) {
	if problems, ok := errors.AsType[config.Problems](err); ok && len(problems) > 1 {
		_ = show.Say(w, "baton: %d problems in the configuration:\n%s\n", len(problems), show.LinesOf(err.Error()))
		return
	}
	text := string(show.LinesOf(err.Error()))
	if !usage {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\t", " "), "\n", "\n  ")
	}
	_ = show.Say(w, "baton: %s\n", show.Shown(text))
}

func newEnvironmentTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Which environment variables baton reads",
		Long:  environmentHelp(),
	}
}
