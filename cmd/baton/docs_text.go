package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A help text is made of paragraphs, which a reader's program may break where it
// likes, and of lines that begin with blanks, which stay as they are.
type block struct {
	lines []string
	as    bool // as it is
}

// blocks parts a help text.
func blocks(text string) []block {
	var all []block
	begun := false // a blank line ends a paragraph
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		as := strings.HasPrefix(line, " ")
		switch {
		case line == "":
			begun = false
		case begun && all[len(all)-1].as == as:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		default:
			all, begun = append(all, block{[]string{line}, as}), true
		}
	}
	for i := range all {
		if all[i].as {
			all[i].lines = outdent(all[i].lines)
		}
	}
	return all
}

// outdent takes off the blanks that all lines begin with.
func outdent(lines []string) []string {
	least := -1
	for _, line := range lines {
		if n := len(line) - len(strings.TrimLeft(line, " ")); line != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for i, line := range lines {
		if line != "" {
			lines[i] = line[least:]
		}
	}
	return lines
}

// about is the whole text about a command; a short one has the short help alone.
func about(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// exampleOf is a command's examples without their indent.
func exampleOf(cmd *cobra.Command) []string {
	if cmd.Example == "" {
		return nil
	}
	return outdent(strings.Split(strings.TrimRight(cmd.Example, "\n"), "\n"))
}

// documented are the commands that the documentation has a page or a section of: root and all
// below it that somebody is to call.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

// below are the commands right below another, and the help topics with them.
func below(cmd *cobra.Command, topics bool) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool {
		return sub.Hidden || sub.Name() == "help" || sub.IsAdditionalHelpTopicCommand() != topics
	})
}

// eachFlag calls f with every flag that a command takes, its own first.
func eachFlag(cmd *cobra.Command, f func(flag *pflag.Flag, value, usage string)) {
	tell := func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		if def := defaultOf(flag); def != "" {
			usage += fmt.Sprintf(" (default %s)", def)
		}
		f(flag, value, usage)
	}
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(tell)
	cmd.InheritedFlags().VisitAll(tell)
}

// defaultOf is what a flag is if it is not given; "" if that goes without saying.
func defaultOf(flag *pflag.Flag) string {
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, flag.DefValue) || strings.Contains(flag.Usage, "default") {
		return ""
	}
	return flag.DefValue
}
