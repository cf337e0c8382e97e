//go:build linux

package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/testsupport"
)

// printedBy returns the output of a trial with changed settings. The trial must succeed.
func printedBy(t *testing.T, text string, change func(*config.Job)) string {
	t.Helper()
	j, o, _ := trial(text)
	change(&j)
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if err != nil {
		t.Fatalf("%v\n%s", err, result.Output)
	}
	return result.Output
}

func TestSettingsAreMadeForTheCommandAlone(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		change           func(*config.Job)
	}{
		{"umask", "umask", "0027\n", func(j *config.Job) { j.Umask = "027" }},
		{"nice", "nice", "17\n", func(j *config.Job) { j.Nice = 17 }},
		{"files", "ulimit -Sn; ulimit -Hn", "64\n64\n", func(j *config.Job) { j.Limits.OpenFiles = 64 }},
		{"memory", "ulimit -v", "262144\n", func(j *config.Job) { j.Limits.AddressSpace = 256 << 20 }},
		{"file size", "grep '^Max file size' /proc/self/limits | tr -s ' '", "Max file size 1048576 1048576 bytes \n", func(j *config.Job) { j.Limits.FileSize = 1 << 20 }},
		{"time", "ulimit -t", "90\n", func(j *config.Job) { j.Limits.CPUTime = 90 * time.Second }},
		{"processes", "grep '^Max processes' /proc/self/limits | tr -s ' '", "Max processes 9000 9000 processes \n", func(j *config.Job) { j.Limits.Processes = 9000 }},
		{"all of them", "umask; nice; ulimit -n; ulimit -v; ulimit -t", "0022\n15\n128\n524288\n60\n", func(j *config.Job) {
			j.Umask, j.Nice, j.Limits = "022", 15, config.Limits{OpenFiles: 128, AddressSpace: 512 << 20, CPUTime: time.Minute}
		}},
		{"input", "cat", "one\ntwo\n", func(j *config.Job) { j.Stdin = file(t, "in", "one\ntwo\n", 0o600) }},
		{"no input", "cat; echo end", "end\n", func(*config.Job) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printedBy(t, c.text, c.change); got != c.want {
				t.Errorf("it has %q, want %q", got, c.want)
			}
		})
	}
	const kernelScale = 20 // the kernel counts priorities down from this value
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The warden must keep its own priority and limits, because it enforces the end of the lease. Only the command gets the settings.
	got := printedBy(t, `ps -o ni= -p $PPID | tr -d ' '; grep '^Max open files' /proc/$PPID/limits | tr -s ' ' | cut -d' ' -f4; nice`,
		func(j *config.Job) { j.Nice, j.Limits.OpenFiles = 19, 64 })
	if lines := strings.Fields(got); len(lines) != 3 || lines[0] != fmt.Sprint(kernelScale-priority) || lines[1] == "64" || lines[2] != "19" {
		t.Errorf("warden and command have %q", got)
	}
}

// A command that exceeds a limit is ended, but the warden is not.
func TestACommandBeyondItsLimitsFails(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		limits     config.Limits
	}{
		"time":      {"while :; do :; done", "ended by signal 9", config.Limits{CPUTime: time.Second}},
		"file size": {"exec dd if=/dev/zero of=" + filepath.Join(t.TempDir(), "big") + " bs=1M count=3", "ended by signal 25", config.Limits{FileSize: 1 << 20}},
		"memory":    {"exec dd if=/dev/zero of=/dev/null bs=300M count=1", "exit code 1", config.Limits{AddressSpace: 100 << 20}},
	} {
		j, o, _ := trial(c.text)
		j.Limits = c.limits
		if result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; it said %q", name, err, c.want, result.Output)
		}
	}
}

func TestExitCodesOfSuccess(t *testing.T) {
	for text, want := range map[string]string{
		"exit 0": "", "exit 3": "", "exit 75": "", "exit 4": "exit code 4",
		"kill -3 $$": "ended by signal 3 (quit)", // a signal is not reported as exit code 3
	} {
		j, o, _ := trial(text)
		j.SuccessExitCodes = []int{3, 75}
		result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if code := strings.TrimPrefix(text, "exit "); code != text && (result.ExitCode == nil || fmt.Sprint(*result.ExitCode) != code) {
			t.Errorf("%s: the history gets %v", text, result.ExitCode)
		}
	}
}

// The stop signal reaches the whole group, and SIGKILL ends the processes that ignore the stop signal.
func TestStopSignalThenGraceThenTheKill(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"it minds it", `trap 'echo asked; exit 0' INT; trap 'echo wrong' TERM; echo ready; while :; do sleep 0.01; done`, "baton told the command to end (exit code 0)"},
		{"so does what it has started", `trap : INT; sh -c 'trap "echo asked; exit" INT; echo ready; while :; do sleep 0.01; done'; exit 5`, "baton told the command to end (exit code 5)"},
		{"it does not", `trap '' INT TERM; echo asked; echo ready; while :; do sleep 0.01; done`, "SIGINT did not end the command, so it was killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			j, o, kept := trial(c.text)
			j.StopSignal = "SIGINT"
			go func() {
				testsupport.Await(t, "the command to be ready", func() bool {
					kept.mu.Lock()
					defer kept.mu.Unlock()
					return len(kept.list) > 0
				})
				cancel()
			}()
			result, err := New(j, errLeaseLost, o).Run(ctx, oneRun)
			if fmt.Sprint(err) != c.want || !strings.Contains(result.Output, "asked\n") || strings.Contains(result.Output, "wrong") {
				t.Errorf("%v, want %s; it said %q", err, c.want, result.Output)
			}
		})
	}
}

// If root runs the test, the command must run as the other user. Otherwise the setting must be refused with a remedy.
func TestACommandOfAnotherUser(t *testing.T) {
	j, o, _ := trial(`id -u; id -g; id -G; echo $HOME $USER; grep -E '^(CapEff|CapAmb)' /proc/self/status; grep SigQ /proc/$PPID/status >/dev/null`)
	j.User = "nobody"
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if os.Geteuid() != 0 {
		if err == nil || !strings.HasPrefix(err.Error(), "user refused by the kernel: operation not permitted; the daemon needs CAP_SETUID") {
			t.Errorf("%v", err)
		}
		return
	}
	want := "65534\n65534\n65534\n/nonexistent nobody\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"
	if err != nil || result.Output != want {
		t.Errorf("%v, %q, want %q", err, result.Output, want)
	}
	j.User, j.Group = "12345", "daemon"
	if result, err = New(j, errLeaseLost, o).Run(t.Context(), oneRun); err != nil || !strings.HasPrefix(result.Output, "12345\n1\n1\n") {
		t.Errorf("%v, %q, want a user without a name, in the group daemon", err, result.Output)
	}
	j.User, j.Env = "", map[string]string{"HOME": "/own"}
	if result, err = New(j, errLeaseLost, o).Run(t.Context(), oneRun); err != nil || !strings.HasPrefix(result.Output, "0\n1\n") {
		t.Errorf("%v, %q, want root in the group daemon", err, result.Output)
	}
}

// The command is ended together with all processes that it has started, whatever user runs them.
func TestACommandOfAnotherUserIsEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, o, kept := trial(`trap '' TERM; setsid sh -c 'trap "" TERM; echo ready; while :; do sleep 0.01; done' & wait; wait`)
	if os.Geteuid() == 0 {
		j.User = "nobody"
	}
	go func() {
		testsupport.Await(t, "the command to be ready", func() bool {
			kept.mu.Lock()
			defer kept.mu.Unlock()
			return len(kept.list) > 0
		})
		cancel()
	}()
	if _, err := New(j, errLeaseLost, o).Run(ctx, oneRun); err == nil || err.Error() != "SIGTERM did not end the command, so it was killed" {
		t.Errorf("%v", err)
	}
}

func TestWhatThisProcessCannotGiveIsRefusedAtItsPlace(t *testing.T) {
	refuse := func(s command.Settings) error { // the kernel returns this error to other users
		if s.User != nil {
			return &command.SettingError{Setting: "user", Errno: syscall.EPERM}
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(*config.Job)
		want   string
	}{
		"nothing":          {func(*config.Job) {}, ""},
		"what anybody may": {func(j *config.Job) { j.Umask, j.Nice, j.Limits.OpenFiles = "022", 15, 64 }, ""},
		"no such user":     {func(j *config.Job) { j.User = "nosuchuser" }, "jobs[0].user: user: nosuchuser is not in /etc/passwd of this host"},
		"no such group":    {func(j *config.Job) { j.Group = "nosuchgroup" }, "jobs[0].group: group: nosuchgroup is not in /etc/group of this host"},
		"another user":     {func(j *config.Job) { j.User = "nobody" }, "jobs[0].user: user refused by the kernel: operation not permitted; the daemon needs CAP_SETUID"},
	} {
		j, _, _ := trial("true")
		c.change(&j)
		got := Refused(config.Config{Jobs: []config.Job{j}}, refuse)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want)) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	// The kernel itself refuses a limit that is higher than its maximum.
	j, o, _ := trial("true")
	j.Limits.OpenFiles = 1 << 40
	want := "jobs[0].limits: limits refused by the kernel: operation not permitted; a command cannot get a higher limit than the daemon"
	if got := Refused(config.Config{Jobs: []config.Job{j}}, o.Wardens.Try); len(got) != 1 || !strings.HasPrefix(got[0].String(), want) {
		t.Errorf("%v, want %q", got, want)
	}
	if _, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err == nil || !strings.HasPrefix(err.Error(), want[len("jobs[0].limits: "):]) {
		t.Errorf("a run says %v", err)
	}
}

func TestLogFileHasTheOutputWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	j, o, _ := trial("echo the password is hunter2-hunter2")
	j.LogFile, o.Known = filepath.Join(dir, "out.log"), func() []string { return []string{"hunter2-hunter2"} }
	for range 2 {
		if _, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(j.LogFile)
	if err != nil || string(text) != strings.Repeat("the password is ***\n", 2) {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(j.LogFile); err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
}

func TestLogFileGoesOnAfterARotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.log")
	j, o, _ := trial("echo first; until [ -e " + path + ".1 ] && [ -e " + path + " ]; do sleep 0.05; echo more; done; echo second")
	j.LogFile = path
	go func() {
		testsupport.Await(t, "it to have written", func() bool {
			text, _ := os.ReadFile(path) // the file may not exist yet
			return strings.HasPrefix(string(text), "first\n")
		})
		if err := os.Rename(path, path+".1"); err != nil {
			t.Error(err)
		}
	}()
	if _, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err != nil {
		t.Fatal(err)
	}
	before, err1 := os.ReadFile(path + ".1")
	after, err2 := os.ReadFile(path)
	if !strings.HasPrefix(string(before), "first\n") || !strings.HasPrefix(string(after), "more\n") || !strings.HasSuffix(string(after), "more\nsecond\n") || errors.Join(err1, err2) != nil {
		t.Errorf("%q and %q, %v, %v", before, after, err1, err2)
	}
}

func TestWhatIsNoLogFileFailsTheRun(t *testing.T) {
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink("/dev/null", link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "x"): "no such file or directory", link: "is a symbolic link; name the file itself", "/dev/null": "/dev/null is not a regular file",
		pipe: "log_file: ", dir: "is a directory",
	} {
		j, o, _ := trial("echo must not run")
		j.LogFile = path
		if result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err == nil || !strings.HasPrefix(err.Error(), "log_file: ") ||
			!strings.Contains(err.Error(), want) || result.Output != "" {
			t.Errorf("%s: %v, %q, want %q", path, err, result.Output, want)
		}
	}
	j, o, _ := trial("cat")
	j.Stdin = pipe
	if _, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun); err == nil || err.Error() != "stdin: "+pipe+" is not a regular file" {
		t.Errorf("%v", err)
	}
}

// /dev/full behaves like a full disk.
func TestAFullDiskEndsTheLogFileAndNotTheRun(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &logFile{path: "/dev/full", log: zap.New(core), changed: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
	go l.keepWriting(full)
	_, _ = newPrintout(nil, 1<<16, nil, l, zap.NewNop()).Write([]byte("lost\n"))
	<-l.done
	for range 100 {
		l.write(make([]byte, 1<<16)) // no write waits for a file that was given up
	}
	l.close(time.Minute)
	if all := logged.All(); len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].ContextMap()["error"]), "no space left on device") {
		t.Errorf("%v", all)
	}
}

// A disk that hangs accepts no data, and a write to it may never return.
func TestADiskThatHangsHoldsNothingUp(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	r, w, err := os.Pipe() // no process reads from it
	if err != nil {
		t.Fatal(err)
	}
	l := &logFile{path: filepath.Join(t.TempDir(), "gone", "x"), log: zap.New(core), changed: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
	go l.keepWriting(w)
	for range 40 {
		l.write(make([]byte, 1<<16))
	}
	l.close(time.Minute)
	if all := logged.All(); len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].ContextMap()["error"]), "no output could be written for 5s") {
		t.Errorf("%v", all)
	}
	if err := r.Close(); err != nil { // makes the writer return with an error
		t.Fatal(err)
	}
	<-l.done
}
