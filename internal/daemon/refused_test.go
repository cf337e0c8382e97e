package daemon

import (
	"errors"
	"testing"

	"go.uber.org/zap"

	"baton/internal/config"
)

// The user of a command is checked when the node starts, and not only when the job is due.
func TestANodeDoesNotStartWithACommandThatItCannotRunAsSaid(t *testing.T) {
	c := config.Default()
	c.Jobs = []config.Job{{Name: "report", Schedule: "@daily", Command: config.Command{"true"}, User: "nosuchuser"}}
	err := Run(t.Context(), c.WithDefaults(), Options{Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }})
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) != 1 || problems[0].Path != "jobs[0].user" {
		t.Errorf("%v", err)
	}
}
