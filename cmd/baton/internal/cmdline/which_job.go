package cmdline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"baton/internal/text"
)

// OneJob has a command name a job, and says which there are.
func OneJob(e Env) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return OneArg(cmd, args)
		}
		return SayWhich("", NamesOfJobs(cmd, e))
	}
}

// OneOrTheJob is for commands that change nothing: where there is just one job, that is meant.
func OneOrTheJob(e Env, name *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if args = NamesOfJobs(cmd, e); len(args) != 1 {
				return SayWhich("", args)
			}
		}
		*name = args[0]
		return OneArg(cmd, args)
	}
}

// SayWhich is the error of a command that was given no job; or is what else it takes.
func SayWhich(or string, names []string) error {
	if len(names) == 0 {
		return errors.New("say which job" + or + "; baton job list shows them")
	}
	return fmt.Errorf("say which job%s: %s", or, text.Names(names, 10))
}

// NamesOfJobs are those that completion offers, as soon as that does; none if that fails.
func NamesOfJobs(cmd *cobra.Command, e Env) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	names := JobNames(e)(ctx, cmd, nil)
	for i, n := range names {
		names[i], _, _ = strings.Cut(n, "\t")
	}
	return names
}
