//go:build unix

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon is more than the time that any command of these tests needs, even on a busy machine.
const soon = 30 * time.Second

func shell(t *testing.T, script string) error {
	t.Helper()
	return shellWithin(t, soon, script)
}

func shellWithin(t *testing.T, limit time.Duration, script string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return NewCommand([]string{"/bin/sh", "-c", script}, os.Environ()).Send(ctx, Event{Kind: Missed, Job: "users", Count: 3})
}

func TestACommandGetsTheEventOnItsStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "event")
	if err := shell(t, "cat > "+file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(b, &e); err != nil || e.Kind != Missed || e.Count != 3 || !strings.HasSuffix(string(b), "}\n") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestHowACommandEnds(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"true", ""},
		{"exec <&-; true", ""}, // does not read its input
		{"sleep 2 >/dev/null 2>&1 & true", ""},
		{"echo said this; echo and that >&2; exit 3", "the command failed: exit status 3: said this and that"},
		{"kill -9 $$", "signal: killed"},
		{"printf 'a\\377b'; exit 1", "a�b"},
		{"i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 1", "line 19999"},
	} {
		err := shell(t, c.script)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.script, err)
			}
			continue
		}
		if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > outputKept+100 {
			t.Errorf("%s: %v, want %q", c.script, err, c.want)
		}
	}
	if err := NewCommand([]string{"/no/such/program"}, nil).Send(t.Context(), Event{}); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestACommandThatHangsIsKilledWithAllThatItHasStarted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	err := shellWithin(t, time.Second, "trap '' TERM; sleep 300 & echo $! > "+file+"; wait")
	if err == nil || !strings.Contains(err.Error(), "did not end in time") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("it took %v", took)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d goes on", pid)
}

// zombie reports whether a process is dead and waits for its parent.
func zombie(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(b), ") Z ")
}
