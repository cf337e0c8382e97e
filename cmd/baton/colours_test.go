package main

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
)

func TestColoursAreForTerminalsAlone(t *testing.T) {
	_, screen := terminal(t, 80, 24)
	for _, tc := range []struct {
		flag    string
		env     map[string]string
		w       io.Writer
		colours bool
	}{
		{"", map[string]string{"TERM": "xterm"}, screen, true},
		{"", map[string]string{"TERM": "xterm"}, io.Discard, false},
		{"", map[string]string{"TERM": "dumb"}, screen, false},
		{"", map[string]string{}, screen, false},
		{"", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, screen, false},
		{"", map[string]string{"TERM": "xterm", "NO_COLOR": ""}, screen, true},
		{"never", map[string]string{"TERM": "xterm"}, screen, false},
		{"always", map[string]string{"NO_COLOR": "1"}, io.Discard, true},
		{"auto", map[string]string{"TERM": "xterm"}, screen, true},
	} {
		cmd := &cobra.Command{}
		show.AddColourFlag(cmd)
		if tc.flag != "" {
			if err := cmd.PersistentFlags().Set("color", tc.flag); err != nil {
				t.Fatal(err)
			}
		}
		e := cmdline.Env{Getenv: func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok }}
		if got := show.NewSheet(cmd, e.Getenv, tc.w).Colour; got != tc.colours {
			t.Errorf("--color %q, %v, terminal %v: colours %v", tc.flag, tc.env, tc.w == screen, got)
		}
	}
}
