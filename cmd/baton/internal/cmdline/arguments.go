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

// NoArgs checks the arguments of commands that accept only flags.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, got %q", called(cmd), args[0])
}

// called returns the command's name without the prefix "baton ", because error messages already start with it.
func called(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "baton ") }

// AtMostOneArg checks the arguments of commands with one optional argument.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return fmt.Errorf("%s takes one argument, got %d: %s", called(cmd), len(args), strings.Join(args, " "))
}

// OneArg checks the arguments of commands with one argument. The command's field Use names the argument.
func OneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, what, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s needs an argument: %s", called(cmd), what)
	}
	return AtMostOneArg(cmd, args)
}

// Topic checks the arguments of "baton help", which are the words of another command, such as "job list".
func Topic(cmd *cobra.Command, args []string) error {
	of, rest, err := cmd.Root().Find(args)
	if err == nil && of.HasAvailableSubCommands() {
		err = of.ValidateArgs(rest)
	}
	return err
}

// excluded matches cobra's error about flags that exclude each other, and captures the names of the given flags.
var excluded = regexp.MustCompile(`none of the others can be; \[(.+)\] were all set`)

// GroupError replaces cobra's error about flags that exclude each other with an error that names the given flags.
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

// FlagError replaces cobra's error about a flag with an error that names the values that the flag accepts.
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
		"int": "must be a whole number", "int64": "must be a whole number", "bool": "must be true or false",
		"duration": "must be a duration such as 30s, 10m or 2h",
	}[f.Value.Type()]
	if wants == "" { // the error of a flag of baton already names the accepted values
		wants = errors.Unwrap(invalid).Error()
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return fmt.Errorf("invalid argument %q for %s: %s", invalid.GetValue(), name, wants)
}

// likeFlag adds the most similar flags to the error about an unknown flag.
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
