package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Parent returns a command that consists only of subcommands.
func Parent(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = closest
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(cmd.SuggestionsFor(args[0])))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, sub := range subs {
			names = append(names, sub.Name())
		}
		last := len(names) - 1
		needed := names[last]
		if last > 0 {
			needed = strings.Join(names[:last], ", ") + " or " + needed
		}
		return UsageError(fmt.Errorf("%s needs %s\nsee %[1]s --help", cmd.CommandPath(), needed))
	}
	cmd.AddCommand(subs...)
	return cmd
}

// didYouMean returns the last part of an error about an unknown word: the suggested words.
func didYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "\n\nDid you mean this?\n\t" + strings.Join(words, "\n\t") + "\n"
}

// closest is the maximum distance between a mistyped word and a suggestion, in letters.
const closest = 2
