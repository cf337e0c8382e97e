package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"baton/internal/text"
)

// oneJob has a command name a job, and says which there are.
func oneJob(e env) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cobra.ExactArgs(1)(cmd, args)
		}
		return sayWhich("", namesOfJobs(cmd, e))
	}
}

// oneOrTheJob is for commands that only look: where there is just one job, that is meant.
func oneOrTheJob(e env, name *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if args = namesOfJobs(cmd, e); len(args) != 1 {
				return sayWhich("", args)
			}
		}
		*name = args[0]
		return cobra.ExactArgs(1)(cmd, args)
	}
}

// sayWhich is the error of a command that was given no job; or is what else it takes.
func sayWhich(or string, names []string) error {
	if len(names) == 0 {
		return errors.New("say which job" + or + "; baton job list shows them")
	}
	return fmt.Errorf("say which job%s: %s", or, text.Names(names, 10))
}

// namesOfJobs are those that completion offers, as soon as that does; none if that fails.
func namesOfJobs(cmd *cobra.Command, e env) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	names := jobNames(e)(ctx, cmd, nil)
	for i, n := range names {
		names[i], _, _ = strings.Cut(n, "\t")
	}
	return names
}
