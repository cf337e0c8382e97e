package child_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport/child"
)

func TestChildrenAreLoggedSignalledAndWaitedFor(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := child.StartLogged(exec.Command("sh", "-c", "echo out; echo err >&2; exit 3"), log)
	if err != nil {
		t.Fatal(err)
	}
	if code := p.Code(); code != 3 || !p.Exited() {
		t.Errorf("code %d, exited %v", code, p.Exited())
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "out\nerr\n" {
		t.Errorf("log %q, %v", text, err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to one that has ended: %v", err)
	}
	if p, err = child.StartLogged(exec.Command("sleep", "60"), log); err != nil {
		t.Fatal(err)
	}
	if p.Exited() || p.Wait(time.Millisecond) {
		t.Error("it has ended by itself")
	}
	if err := p.Freeze(); err != nil {
		t.Error(err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid())); err != nil || !strings.Contains(string(stat), "(sleep) T ") {
		t.Errorf("frozen: %s, %v", stat, err)
	}
	if err := p.Kill(); err != nil || p.Code() != -int(syscall.SIGKILL) {
		t.Errorf("killed: %v, code %d", err, p.Code())
	}
	if _, err := child.Start(exec.Command("/no/such/program")); err == nil {
		t.Error("a program that is not there was started")
	}
}
