package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"baton/internal/config"
)

// env is the world outside, so that a test can bring its own.
type env struct {
	args           []string // without the program's name
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         config.Lookup
	exit           func(code int) // ends the process at once
}

// commands lists every command of baton, in groups as the help text has them.
func commands(e env) []*cobra.Command {
	return slices.Concat(
		grouped(groupDaily, newStatusCommand(e), newLeaderCommand(e), newWhoCommand(e), newStepDownCommand(e), newPauseCommand(e), newResumeCommand(e), newReloadCommand(e)),
		grouped(groupJobs, newJobCommand(e), newDeadCommand(e), newStageCommand(e), newLockCommand(e)),
		grouped(groupWrong, newExplainCommand(e), newDoctorCommand(e), newFenceCommand(e), newReleaseCommand(e)),
		grouped(groupSetup, newDemoCommand(e), newConfigCommand(e), newRunCommand(e), newDrillCommand(e), newCompletionCommand(e), newVersionCommand(e)),
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

// exitError gives an error the exit code that a script can tell it by. With a
// nil err the command has said everything itself.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks an error as the caller's: wrong arguments, or a
// configuration that cannot be used.
func usageError(err error) error { return &exitError{exitUsage, err} }

// run is the whole program, apart from what only main can have.
func run(ctx context.Context, e env) int {
	return execute(ctx, newRootCommand(e), e.stderr)
}

// execute runs the command that root finds in its arguments, prints an error
// once, and answers with the exit code.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmd.ValidateFlagGroups() // cobra itself does so too late to be told from a failure
		started = err == nil
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitFailure
	coded, ok := errors.AsType[*exitError](err)
	if ok {
		code = coded.code
	} else if !started { // the arguments were not understood
		code = exitUsage
		err = fmt.Errorf("%w\nsee %s --help", err, cmd.CommandPath())
	}
	if !ok || coded.err != nil {
		printError(stderr, err, code == exitUsage)
	}
	return code
}

func newRootCommand(e env) *cobra.Command {
	root := &cobra.Command{
		Use:   "baton",
		Short: "Run scheduled jobs on one of many hosts",
		Long: "baton runs on every host. One host holds the baton, a lock in Redis, and runs the\n" +
			"scheduled jobs: it flushes Redis data into a SQL database. The others stand ready\n" +
			"and take over by themselves.",
		Example: "  baton demo                      # see it at work, on this machine\n" +
			"  baton status --watch            # who leads, and is data late?\n" +
			"  baton explain                   # why does this node not lead?\n" +
			"  baton job run users --watch     # run a job now\n" +
			"  baton help exit-codes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(e.args)
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(likeFlag)
	root.AddGroup(groups()...)
	root.SetHelpCommandGroupID(groupSetup)
	addColourFlag(root)
	addVersionFlag(root)
	root.AddCommand(commands(e)...)
	return root
}

// printError writes "baton: what happened". Several problems of a configuration
// get a line each, which begins with its place so that editors can go there. Other errors
// than of usage may hold texts from outside: no line of theirs looks like another message.
func printError(w io.Writer, err error, usage bool) {
	if problems, ok := errors.AsType[config.Problems](err); ok && len(problems) > 1 {
		_ = say(w, "baton: %d problems in the configuration:\n%s\n", len(problems), linesOf(err.Error()))
		return
	}
	text := string(linesOf(err.Error()))
	if !usage {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\t", " "), "\n", "\n  ")
	}
	_ = say(w, "baton: %s\n", shown(text))
}

func newEnvironmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Flags go over environment variables, these go over the configuration file.\n" +
		"An empty variable counts as not set.\n\n")
	fmt.Fprintf(&b, "  %-26s %-22s %s\n", "VARIABLE", "FLAG", "IN THE FILE")
	fmt.Fprintf(&b, "  %-26s %-22s\n", configEnv, "--config")
	fmt.Fprintf(&b, "  %-26s %-22s\n  %-26s %-22s\n  %-26s %-22s\n", serverEnv, "--server", tokenFileEnv, "--token-file", caFileEnv, "--ca-file")
	fmt.Fprintf(&b, "  %-26s %-22s\n", "NO_COLOR", "--color never")
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "  %-26s %-22s %s\n", s.Env, "--"+s.Flag, s.Path)
	}
	return &cobra.Command{
		Use:   "environment",
		Short: "Which environment variables baton reads",
		Long:  strings.TrimRight(b.String(), "\n"),
	}
}
