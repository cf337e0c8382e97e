package cmdline

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"baton/internal/text"
)

// NoArgs is for commands that take flags alone.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, got %q", called(cmd), args[0])
}

// called is a command as an error names it, which begins with "baton: ".
func called(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "baton ") }

// AtMostOneArg is for commands with one argument that may be left out.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return fmt.Errorf("%s takes one argument, got %d: %s", called(cmd), len(args), strings.Join(args, " "))
}

// OneArg is for commands with one argument; their Use names it.
func OneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, what, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s needs an argument: %s", called(cmd), what)
	}
	return AtMostOneArg(cmd, args)
}

// Topic is for help, which takes the words of a command.
func Topic(cmd *cobra.Command, args []string) error {
	of, rest, err := cmd.Root().Find(args)
	if err == nil && of.HasAvailableSubCommands() {
		err = of.ValidateArgs(rest)
	}
	return err
}

// excluded finds the given flags in cobra's error about flags that exclude each other.
var excluded = regexp.MustCompile(`none of the others can be; \[(.+)\] were all set`)

// GroupError turns an error about flags that exclude each other into one that names the given flags.
func GroupError(err error) error {
	if err == nil {
		return nil
	}
	given := excluded.FindStringSubmatch(err.Error())
	if given == nil {
		return err
	}
	flags := strings.Fields(given[1])
	return fmt.Errorf("--%s: give one of them, not both", strings.Join(flags, " and --"))
}

// FlagError turns an error about a flag into one that names the values that the flag takes.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return likeFlag(cmd, unknown)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := invalid.GetFlag()
	wants := map[string]string{
		"int": "want a whole number", "int64": "want a whole number", "bool": "want true or false",
		"duration": "want a duration such as 30s, 10m or 2h",
	}[f.Value.Type()]
	if wants == "" { // a flag of ours says it itself
		wants = errors.Unwrap(invalid).Error()
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return fmt.Errorf("invalid argument %q for %s: %s", invalid.GetValue(), name, wants)
}

// likeFlag adds to an unknown flag those that it may have been meant for.
func likeFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		return fmt.Errorf("unknown flag: -%s", unknown.GetSpecifiedName())
	}
	name := unknown.GetSpecifiedName()
	if len(name) < closest {
		return unknown
	}
	var like []string
	compare := func(f *pflag.Flag) {
		if !f.Hidden && (strings.HasPrefix(f.Name, name) || text.Edits(f.Name, name) <= closest) {
			like = append(like, "--"+f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(compare)
	cmd.InheritedFlags().VisitAll(compare)
	return fmt.Errorf("%w%s", unknown, didYouMean(like))
}
