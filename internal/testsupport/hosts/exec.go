package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Result is how a command in a host ended.
type Result struct {
	Stdout, Stderr string
	Code           int // minus the signal, if one ended it
}

// Run runs a command in the host, as root, and returns however it ends.
func (h *Host) Run(argv ...string) Result {
	h.lab.t.Helper()
	return h.run("", argv)
}

// Must is the output of a command that succeeds.
func (h *Host) Must(argv ...string) string {
	h.lab.t.Helper()
	r := h.run("", argv)
	if r.Code != 0 {
		h.lab.t.Fatalf("host %s: %s: code %d\n%s%s", h.Name, strings.Join(argv, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Shell runs lines of a shell that must succeed.
func (h *Host) Shell(script string) string {
	h.lab.t.Helper()
	return h.Must("/bin/sh", "-ec", script)
}

// Write writes a file, making the directories that it lacks.
func (h *Host) Write(path, content string) {
	h.lab.t.Helper()
	h.WriteMode(path, content, "0644")
}

// WriteMode is Write with a mode, as chmod takes it.
func (h *Host) WriteMode(path, content, mode string) {
	h.lab.t.Helper()
	r := h.run(content, []string{"/bin/sh", "-ec", `mkdir -p "${0%/*}"; rm -f "$0"; (umask 077; cat >"$0"); chmod "$1" "$0"`, path, mode})
	if r.Code != 0 {
		h.lab.t.Fatalf("host %s: write %s: %s", h.Name, path, r.Stderr)
	}
}

// Read is the content of a file; false if there is none.
func (h *Host) Read(path string) (string, bool) {
	h.lab.t.Helper()
	r := h.Run("cat", path)
	return r.Stdout, r.Code == 0
}

func (h *Host) run(stdin string, argv []string) Result {
	h.lab.t.Helper()
	cmd := h.command(argv)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.lab.t.Fatalf("host %s: run %s: %v", h.Name, strings.Join(argv, " "), err)
	}
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	return r
}

// command is a command in all namespaces of the host, with an environment of its own.
func (h *Host) command(argv []string) *exec.Cmd {
	if h.init == nil {
		h.lab.t.Fatalf("host %s is off", h.Name)
	}
	enter := []string{
		"--target", strconv.Itoa(h.init.Process.Pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd", "--",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0",
	}
	return exec.Command("nsenter", append(enter, argv...)...)
}

// Property is what systemctl show says of a unit.
func (h *Host) Property(unit, name string) string {
	h.lab.t.Helper()
	return strings.TrimSpace(h.Must("systemctl", "show", "--value", "--property="+name, unit))
}

// MainPid is the number, in the host, of a service's main process.
func (h *Host) MainPid(unit string) int {
	h.lab.t.Helper()
	pid, err := strconv.Atoi(h.Property(unit, "MainPID"))
	if err != nil || pid == 0 {
		h.lab.t.Fatalf("host %s: %s has no main process (%v)", h.Name, unit, err)
	}
	return pid
}

// Journal is what a unit has logged, without times.
func (h *Host) Journal(unit string) string {
	h.lab.t.Helper()
	return h.Must("journalctl", "--no-pager", "--output=cat", "--unit="+unit)
}

// String is the name, for messages.
func (h *Host) String() string { return fmt.Sprintf("host %s (%s)", h.Name, h.Addr) }
