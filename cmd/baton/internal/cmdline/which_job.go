package cmdline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"baton/internal/text"
)

// OneJob checks that the arguments name a job. Its error lists the jobs.
func OneJob(e Env) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return OneArg(cmd, args)
		}
		return SayWhich("", NamesOfJobs(cmd, e))
	}
}

// OneOrTheJob checks the arguments of commands that change nothing. The user may omit the name if there is only one job.
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

// SayWhich returns the error of a command that needs the name of a job. The argument or is a text that names an alternative to the job
// name.
func SayWhich(or string, names []string) error {
	if len(names) == 0 {
		return errors.New("say which job" + or + "; baton job list shows them")
	}
	return fmt.Errorf("say which job%s: %s", or, text.Names(names, 10))
}

// NamesOfJobs returns the job names that completion offers. It returns no names if reading them fails or takes too long.
func NamesOfJobs(cmd *cobra.Command, e Env) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	names := JobNames(e)(ctx, cmd, nil)
	for i, n := range names {
		names[i], _, _ = strings.Cut(n, "\t")
	}
	return names
}
