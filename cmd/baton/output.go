package main

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

// output is how a command prints its result. It is the value of the flag -o.
type output struct {
	format string // "": a table
	sheet  func(io.Writer) io.Writer
}

// String, Set and Type make output a flag.
func (o *output) String() string {
	if o.format == "" {
		return formatTable
	}
	return o.format
}

// Set takes one of the formats.
func (o *output) Set(s string) error {
	if !slices.Contains(formats(), s) {
		return errors.New("want table, json or yaml")
	}
	o.format = s
	return nil
}

// Type is what the help text calls the value.
func (o *output) Type() string { return "format" }

func (o *output) addFlag(cmd *cobra.Command, e env) {
	cmd.Flags().VarP(o, "output", "o", "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	o.sheet = func(w io.Writer) io.Writer { return newSheet(cmd, e, w) }
}

// data says that a program reads what is printed, and not a person.
func (o *output) data() bool { return o.String() != formatTable }

// print writes value as one JSON or YAML document, or what text writes.
func (o *output) print(w io.Writer, value any, text func(io.Writer) error) error {
	if !o.data() {
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
