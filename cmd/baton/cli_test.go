package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

// cli runs baton in a fresh directory, with its own environment.
type cli struct {
	t   *testing.T
	env map[string]string
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	t.Chdir(t.TempDir())
	return &cli{t, map[string]string{}}
}

// file writes a file into the directory.
func (c *cli) file(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the whole program, except for main.
func (c *cli) run(args ...string) result {
	c.t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(c.t.Context(), cmdline.Env{
		Args:   args,
		Stdin:  strings.NewReader(""),
		Stdout: &stdout,
		Stderr: &stderr,
		Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
	})
	return result{code, stdout.String(), stderr.String()}
}

// want fails the test unless the command has exactly this exit code and output.
func (c *cli) want(code int, stdout, stderr string, args ...string) {
	c.t.Helper()
	if got, want := c.run(args...), (result{code, stdout, stderr}); got != want {
		c.t.Errorf("baton %s\ngot  %d\n%s%s\nwant %d\n%s%s", strings.Join(args, " "),
			got.code, got.stdout, got.stderr, want.code, want.stdout, want.stderr)
	}
}
