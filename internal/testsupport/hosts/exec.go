package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Result is the output and the exit code of a command in a host.
type Result struct {
	Stdout, Stderr string
	Code           int // or minus the number of the signal that ended the command
}

// Run runs a command in the host as root. It returns the result also if the command fails.
func (h *Host) Run(argv ...string) Result {
	h.lab.t.Helper()
	return h.run("", argv)
}

// Must runs a command and returns its output. It fails the test if the command fails.
func (h *Host) Must(argv ...string) string {
	h.lab.t.Helper()
	r := h.run("", argv)
	if r.Code != 0 {
		h.lab.t.Fatalf("host %s: %s: code %d\n%s%s", h.Name, strings.Join(argv, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Shell runs a shell script and returns its output. It fails the test if the script fails.
func (h *Host) Shell(script string) string {
	h.lab.t.Helper()
	return h.Must("/bin/sh", "-ec", script)
}

// Write writes a file, and makes the missing directories of its path.
func (h *Host) Write(path, content string) {
	h.lab.t.Helper()
	h.WriteMode(path, content, "0644")
}

// WriteMode is like Write with a file mode, such as "0600".
func (h *Host) WriteMode(path, content, mode string) {
	h.lab.t.Helper()
	r := h.run(content, []string{"/bin/sh", "-ec", `mkdir -p "${0%/*}"; rm -f "$0"; (umask 077; cat >"$0"); chmod "$1" "$0"`, path, mode})
	if r.Code != 0 {
		h.lab.t.Fatalf("host %s: write %s: %s", h.Name, path, r.Stderr)
	}
}

// Read returns the content of a file. It returns false if the file does not exist.
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

// command returns a command that runs in all namespaces of the host, with its own environment.
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

// Property returns a property of a systemd unit, as `systemctl show` prints it.
func (h *Host) Property(unit, name string) string {
	h.lab.t.Helper()
	return strings.TrimSpace(h.Must("systemctl", "show", "--value", "--property="+name, unit))
}

// MainPid returns the process id of a service's main process, as the host sees it.
func (h *Host) MainPid(unit string) int {
	h.lab.t.Helper()
	pid, err := strconv.Atoi(h.Property(unit, "MainPID"))
	if err != nil || pid == 0 {
		h.lab.t.Fatalf("host %s: %s has no main process (%v)", h.Name, unit, err)
	}
	return pid
}

// Journal returns the log of a unit, without times.
func (h *Host) Journal(unit string) string {
	h.lab.t.Helper()
	return h.Must("journalctl", "--no-pager", "--output=cat", "--unit="+unit)
}

// String returns the host's name and address, for messages.
func (h *Host) String() string { return fmt.Sprintf("host %s (%s)", h.Name, h.Addr) }
