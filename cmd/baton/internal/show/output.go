// Package show prints the output of a command: a table or lines for people, or one JSON or YAML document for programs.
//
//	Output, Print    the flag -o, which selects the format of the result
//	Sheet            a writer for people, with its colours and its width
//	Say              a function that writes texts for people; a SafeText contains only baton's own control codes
//	Table            a writer that aligns cells in columns, by the width of their characters on a terminal
//	Counter, Waits   the progress of a command, and the slow steps that the command waits for
//	Raw              a terminal that shows the output of a job's program
//	Keys             a function that reads single keys from a terminal
//
// The invariants:
//
//   - No text from outside controls the terminal. Reasons, names and records are written by Say, which writes each as one line and shows
//     control codes as text. Only Raw passes a program's colours, and it resets them at the end.
//   - A document for programs has no colours, and is the same on a terminal and in a pipe. The YAML has the same names, order and values as
//     the JSON.
//   - The words have the same meaning without colours. Colours are off without a terminal, with $NO_COLOR, and with --color never.
//   - A terminal whose keys were read gets its old settings back when the command ends, when Ctrl-Z stops the command, and when a second
//     signal kills the command.
//
// The failures: a command returns an error of its writer. Without a terminal the width has no limit, Counter prints nothing, and Keys
// returns nil, so that the command continues without keys.
package show

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// These are the output formats. The format "table", which may also be a few lines of text, is for people.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

func formats() []string { return []string{formatTable, formatJSON, formatYAML} }

// Output is the format of a command's result. It is the value of the flag -o.
type Output struct {
	format string // "": a table
	sheet  func(io.Writer) io.Writer
}

// String returns the format. It implements pflag.Value together with Set and Type.
func (o *Output) String() string {
	if o.format == "" {
		return formatTable
	}
	return o.format
}

// Set sets the format. It returns an error if the format is unknown.
func (o *Output) Set(s string) error {
	if !slices.Contains(formats(), s) {
		return errors.New("must be table, json or yaml")
	}
	o.format = s
	return nil
}

// Type returns the name of the flag's value in the help text.
func (o *Output) Type() string { return "format" }

// AddFlag adds the flag -o to cmd.
func (o *Output) AddFlag(cmd *cobra.Command, getenv lookup) {
	cmd.Flags().VarP(o, "output", "o", "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	o.sheet = func(w io.Writer) io.Writer { return NewSheet(cmd, getenv, w) }
}

// Data reports whether the output is for a program instead of a person.
func (o *Output) Data() bool { return o.String() != formatTable }

// Print writes value as one JSON or YAML document. For the format "table" it calls the function text instead.
func (o *Output) Print(w io.Writer, value any, text func(io.Writer) error) error {
	if !o.Data() {
		return text(o.sheet(w))
	}
	if o.format == formatYAML {
		return writeYAML(w, value)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
