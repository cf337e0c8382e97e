package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
)

// The linker sets version and commit: -ldflags "-X main.version=1.2.3 -X main.commit=0123abcd". A build without these flags is a
// developer's build.
var (
	version = "dev"
	commit  = ""
)

// build describes the build of this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String implements fmt.Stringer.
func (b build) String() string {
	return fmt.Sprintf("baton %s (commit %s, %s, %s)", b.Version, b.Commit, b.Go, b.Platform)
}

// addVersionFlag makes "baton --version" print the same text as "baton version". The flag is hidden from the help text, because the list of
// commands already contains the command.
func addVersionFlag(root *cobra.Command) {
	root.Version = thisBuild().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this binary")
	_ = root.Flags().MarkHidden("version")
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

func newVersionCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  baton version\n  baton version -o json",
		Args:    cmdline.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return out.Print(e.Stdout, b, func(w io.Writer) error { return show.Say(w, "%s\n", b) })
		},
	}
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
