package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// workerEnv holds the spec of a worker process.
const workerEnv = "BATON_TEST_WORKER"

// work is the program of a worker process: lead, flush until nothing is pending,
// and die at spec.KillAt if it is set.
func work(text string) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := workOn(ctx, text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func workOn(ctx context.Context, text string) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	killed := newTally(s.KillAt, func() error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return err
		}
		select {} // nothing more may be done until the signal arrives
	})
	n, err := newNode(s, killed.observe)
	if err != nil {
		return err
	}
	if err := n.lead(ctx); err != nil {
		return err
	}
	if err := n.flush(ctx); err != nil {
		return err
	}
	return n.close(ctx)
}

// process runs a worker to its end.
func (c *cell) process(s spec) (stderr string, err error) {
	c.t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), os.Args[0])
	var out strings.Builder
	cmd.Stderr = &out
	// The race detector would make each of hundreds of processes sleep before it exits.
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	return out.String(), err
}

// killed runs a worker that must die at p by SIGKILL.
func (c *cell) killed(p point) {
	c.t.Helper()
	s := c.spec("victim")
	s.KillAt = p
	stderr, err := c.process(s)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.t.Fatalf("the process was to be killed at %q, but ended with %v: it never came there\n%s", p, err, stderr)
	}
}

// finished runs a worker that must leave nothing pending.
func (c *cell) finished() {
	c.t.Helper()
	if stderr, err := c.process(c.spec("fresh")); err != nil {
		c.t.Fatalf("a fresh process could not finish: %v\n%s", err, stderr)
	}
}
