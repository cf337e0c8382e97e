package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A group that does not belong to a service may contain processes that are not ours. Whether they are killed must not depend on an
// environment variable alone.
func TestOnlyAServicesOwnControlGroupIsKilled(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"unified", "0::/system.slice/baton.service\n", []string{"/system.slice/baton.service"}},
		{"a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/baton.service\n",
			[]string{"/user.slice/user-1000.slice/user@1000.service/app.slice/baton.service"}},
		{"hybrid", "12:cpu:/\n1:name=systemd:/system.slice/baton.service\n0::/system.slice/baton.service\n",
			[]string{"/system.slice/baton.service", "/system.slice/baton.service"}},
		{"the root group", "0::/\n", nil},
		{"the root groups of a container", "9:name=systemd:/\n8:pids:/\n0::/\n", nil},
		{"a session", "0::/user.slice/user-1000.slice/session-3.scope\n", nil},
		{"a terminal of a user's service manager", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n", nil},
		{"another controller's group", "4:memory:/x.service\n", nil},
		{"nothing", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := serviceGroups(c.text)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestWhatRunsAfterTheDaemonFindsTheCredentialsThatSystemdHidesFromIt(t *testing.T) {
	hidden, runtime := filepath.Join(t.TempDir(), "hidden"), t.TempDir()
	env := map[string]string{"CREDENTIALS_DIRECTORY": hidden, "RUNTIME_DIRECTORY": runtime + ":/elsewhere", "X": "y"}
	lookup := Env(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	expect := func(when, want string) {
		t.Helper()
		if got, ok := lookup("CREDENTIALS_DIRECTORY"); got != want || !ok {
			t.Errorf("%s: got %q, %v; want %q", when, got, ok, want)
		}
	}
	expect("nowhere", hidden)
	again := filepath.Join(runtime, "credentials")
	if err := os.Mkdir(again, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("mounted a second time", again)
	if err := os.Mkdir(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("not hidden", hidden)
	if got, _ := lookup("X"); got != "y" {
		t.Errorf("another variable: got %q", got)
	}
	delete(env, "CREDENTIALS_DIRECTORY")
	if got, ok := lookup("CREDENTIALS_DIRECTORY"); ok {
		t.Errorf("without credentials: got %q", got)
	}
}

// For kill(2), 0 means the caller's own process group, and -1 means every process.
func TestAProcessThatCannotBeKilledSavesNoOther(t *testing.T) {
	victim := exec.Command("sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	left, refused := killAll([]int{0, os.Getpid(), victim.Process.Pid})
	if left != 1 || refused == nil {
		t.Errorf("got %d processes left, %v; want 1 and an error", left, refused)
	}
	if err := victim.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the other process ended with %v; want it killed", err)
	}
	if left, refused = killAll([]int{0}); left != 0 || refused == nil {
		t.Errorf("got %d processes left, %v; want an error", left, refused)
	}
}
