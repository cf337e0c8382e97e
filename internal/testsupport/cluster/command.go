package cluster

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"baton/internal/testsupport/child"
	"baton/internal/testsupport/ranout"
)

// Result is the exit code and the output of a command of baton.
type Result struct {
	Code           int
	Stdout, Stderr string
	Took           time.Duration
}

// Command runs baton and waits for its end. Of baton's environment variables the command gets only the variables in env. If the command
// takes longer than timeout, it is killed and the test fails.
func Command(t testing.TB, timeout time.Duration, env []string, args ...string) Result {
	t.Helper()
	cmd := exec.Command(Build(t), args...)
	cmd.Env = environment(env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Wait(timeout) {
		_ = p.Kill() // the command has ended already
		ranout.Fatal(t, fmt.Sprintf("the end of baton %v", args),
			fmt.Sprintf("baton %v has not ended after %v; standard error:\n%s", args, timeout, stderr.String()))
	}
	return Result{Code: p.Code(), Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(began)}
}
