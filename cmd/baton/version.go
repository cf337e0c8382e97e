package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// These are set by the linker: -ldflags "-X main.version=1.2.3 -X main.commit=0123abcd".
// A build without them is a developer's own.
var (
	version = "dev"
	commit  = ""
)

// build is what this binary is made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{
		Version:  version,
		Commit:   commit,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if b.Commit == "" && ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

func newVersionCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return out.print(e.stdout, b, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "baton %s (commit %s, %s, %s)\n", b.Version, b.Commit, b.Go, b.Platform)
				return err
			})
		},
	}
	out.addFlag(cmd)
	return cmd
}

// output is how a command prints its result: as text for people, or as JSON for
// programs. It is the value of the flag -o.
type output struct{ json bool }

// String, Set and Type make output a flag.
func (o *output) String() string {
	if o.json {
		return "json"
	}
	return "text"
}

// Set takes text or json.
func (o *output) Set(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("want text or json")
	}
	o.json = s == "json"
	return nil
}

// Type is what the help text calls the value.
func (o *output) Type() string { return "format" }

func (o *output) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// print writes value as one JSON object, or what text writes.
func (o *output) print(w io.Writer, value any, text func(io.Writer) error) error {
	if !o.json {
		return text(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
