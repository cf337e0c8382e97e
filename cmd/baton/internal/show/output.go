// Package show prints the output of a command: a table or lines for people, or one JSON or YAML document for
// programs. Nothing that comes from outside commands the terminal.
package show

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// The formats of output: a table, or a few lines of text, is for people.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

func formats() []string { return []string{formatTable, formatJSON, formatYAML} }

// Output is how a command prints its result. It is the value of the flag -o.
type Output struct {
	format string // "": a table
	sheet  func(io.Writer) io.Writer
}

// String is the format; with Set and Type it makes Output a flag.
func (o *Output) String() string {
	if o.format == "" {
		return formatTable
	}
	return o.format
}

// Set takes one of the formats.
func (o *Output) Set(s string) error {
	if !slices.Contains(formats(), s) {
		return errors.New("want table, json or yaml")
	}
	o.format = s
	return nil
}

// Type is the name of the value in the help text.
func (o *Output) Type() string { return "format" }

// AddFlag gives cmd the flag -o.
func (o *Output) AddFlag(cmd *cobra.Command, getenv lookup) {
	cmd.Flags().VarP(o, "output", "o", "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	o.sheet = func(w io.Writer) io.Writer { return NewSheet(cmd, getenv, w) }
}

// Data says that the output is for a program, and not for a person.
func (o *Output) Data() bool { return o.String() != formatTable }

// Print writes value as one JSON or YAML document, or else calls text.
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
