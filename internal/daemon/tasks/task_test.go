package tasks

import (
	"testing"

	"baton/internal/config"
)

// A user may write a password into a command line.
func TestOfACommandOnlyTheProgramIsNamed(t *testing.T) {
	for want, j := range map[string]config.Job{
		"a shell command": {Shell: true, Command: config.Command{"mysql -phunter2 <report.sql"}},
		"mysql":           {Command: config.Command{"/usr/bin/mysql", "-phunter2"}},
	} {
		if got := (Task{Config: j}).Target(); got != want {
			t.Errorf("%q is shown as %q, want %q", j.Command, got, want)
		}
	}
}
