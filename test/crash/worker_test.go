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

// workerEnv is the variable with the specs of a worker process.
const workerEnv = "BATON_TEST_WORKER"

// work is the program of a worker process. For one spec after the other it leads and flushes until nothing is pending. If a spec has a
// KillAt, it dies at that point.
func work(text string) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var specs []spec
	err := json.Unmarshal([]byte(text), &specs)
	if err == nil {
		err = workOn(ctx, specs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func workOn(ctx context.Context, specs []spec) error {
	var now *tally
	st, err := openStores(specs[0], func(b boundary) error { return now.observe(b) })
	if err != nil {
		return err
	}
	for _, s := range specs {
		now = newTally(s.KillAt, suicide)
		n, err := newNode(s, st, now.observe)
		if err != nil {
			return err
		}
		if err := n.lead(ctx); err != nil {
			return err
		}
		if err := n.flush(ctx); err != nil {
			return fmt.Errorf("job %s: %w", s.Job, err)
		}
		if err := n.release(ctx); err != nil {
			return err
		}
	}
	return st.close()
}

func suicide() error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {} // the process must do nothing more until the signal arrives
}

// process runs a worker to its end.
func process(ctx context.Context, specs ...spec) (stderr string, err error) {
	text, err := json.Marshal(specs)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	var out strings.Builder
	cmd.Stderr = &out
	// The race detector would make each of hundreds of processes sleep before it exits.
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	return out.String(), err
}

// isKilled reports whether a process ended by SIGKILL.
func isKilled(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}
