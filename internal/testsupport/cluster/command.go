package cluster

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"baton/internal/testsupport/child"
)

// Result is how a command of baton ended.
type Result struct {
	Code           int
	Stdout, Stderr string
	Took           time.Duration
}

// Command runs baton to its end, with nothing of baton's in its environment but
// env. It is killed, and the test fails, if it takes longer than timeout.
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
		_ = p.Kill() // it is over
		t.Fatalf("baton %v has not ended after %v; standard error:\n%s", args, timeout, stderr.String())
	}
	return Result{Code: p.Code(), Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(began)}
}
