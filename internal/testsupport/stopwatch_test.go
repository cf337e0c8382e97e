package testsupport

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopped reports whether a signal has stopped all threads of a process.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // the process may have ended
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && string(fields[0]) == "T"
}

// The test freezes a process to imitate a machine that pauses.
func TestAStopwatchLeavesOutWhatTheMachineStoodStill(t *testing.T) {
	const frozen = time.Second
	if os.Getenv("STOPWATCH_TEST") != "" {
		w := StartStopwatch(t)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		for w.Still() < frozen*9/10 && time.Since(w.began) < time.Minute { // the threads of a process do not stop all at once
			time.Sleep(time.Millisecond)
		}
		if took, still := w.Took(), w.Still(); still < frozen*9/10 || took > time.Since(w.began)-frozen*9/10 {
			t.Errorf("it took %v, and stood still for %v", took, still)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "STOPWATCH_TEST=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	Await(t, "the process to stop itself", func() bool { return stopped(cmd.Process.Pid) })
	time.Sleep(frozen)
	if err := errors.Join(cmd.Process.Signal(syscall.SIGCONT), cmd.Wait()); err != nil {
		t.Error(err, out.String())
	}
}

func TestAStopwatchCountsWhatWaits(t *testing.T) {
	for range 100 {
		w := StartStopwatch(t)
		time.Sleep(300 * time.Millisecond)
		if took, still := w.Took(), w.Still(); still == 0 && took < 300*time.Millisecond {
			t.Errorf("300 ms took %v", took)
		} else if still == 0 {
			return
		}
	}
	t.Error("it stood still in each of 100 times")
}
