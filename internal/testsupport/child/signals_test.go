package child_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"baton/internal/testsupport/child"
)

// If a process starts under nohup, or as a background job of a shell, it ignores signals, and its children inherit that.
func TestChildrenOfAProcessThatIgnoresSignalsDoNot(t *testing.T) {
	const mark = "CHILD_SIGNALS"
	if os.Getenv(mark) != "" {
		child.InheritNoIgnoredSignals()
		out, err := exec.Command("sh", "-c", "kill -HUP $$; kill -QUIT $$; echo alive").CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGHUP {
			t.Errorf("the child ends with %v and says %q, want it ended by SIGHUP", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGQUIT)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
