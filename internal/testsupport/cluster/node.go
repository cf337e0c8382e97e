package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Node is one baton process, or what is left of it.
type Node struct {
	ID string

	c          *Cluster
	t          testing.TB
	program    string
	config     string
	log        string
	env        []string
	runtimeDir string

	proc    *process
	url     string
	frozen  bool
	ordered bool  // this harness has ended the process
	from    int64 // where the log of this process begins
}

// launch starts the process.
func (n *Node) launch() {
	n.t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	if n.from, err = log.Seek(0, 2); err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command(n.program, "run", "--config", n.config)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Dir(n.log), n.env, log, log
	n.frozen, n.ordered, n.url = false, false, ""
	if n.proc, err = startProcess(cmd); err != nil {
		n.t.Fatal(err)
	}
}

// awaitStarted waits until the node tells where its status page is.
func (n *Node) awaitStarted() {
	n.t.Helper()
	n.c.Await(startWithin, n.ID+" to start", func() bool {
		if n.proc.exited() {
			n.t.Fatalf("%s ended at its start with code %d", n.ID, n.proc.code)
		}
		for _, line := range parseLines(n.logFrom(n.from)) {
			if line.Message == "started" {
				n.url = "http://" + line.Text("http")
				return true
			}
		}
		return false
	})
}

// Start starts a node that has ended. It returns when the election loop runs.
func (n *Node) Start() {
	n.t.Helper()
	if n.Running() {
		n.t.Fatalf("%s runs already", n.ID)
	}
	n.launch()
	n.awaitStarted()
}

// Restart kills the node if it runs, and starts it again.
func (n *Node) Restart() {
	n.t.Helper()
	n.Kill()
	n.Start()
}

// Kill ends the process with SIGKILL: a crash. One that has ended stays so.
func (n *Node) Kill() {
	n.t.Helper()
	if n.proc.exited() {
		return
	}
	n.ordered = true
	n.Signal(syscall.SIGKILL)
	<-n.proc.done
}

// Terminate ends the process with SIGTERM, as systemd does, and returns its exit code.
func (n *Node) Terminate(timeout time.Duration) int {
	n.t.Helper()
	n.ordered = true
	n.Signal(syscall.SIGTERM)
	return n.Wait(timeout)
}

// Wait waits for the process to end and returns its exit code, or minus the signal
// that ended it.
func (n *Node) Wait(timeout time.Duration) int {
	n.t.Helper()
	if !n.proc.wait(timeout) {
		n.t.Fatalf("%s has not ended after %v", n.ID, timeout)
	}
	n.ordered = true // it was waited for: its end is no surprise
	return n.proc.code
}

// Freeze stops the process where it is (SIGSTOP): a machine that is paused.
func (n *Node) Freeze() {
	n.t.Helper()
	n.frozen = true
	n.Signal(syscall.SIGSTOP)
}

// Thaw lets a frozen process go on.
func (n *Node) Thaw() {
	n.t.Helper()
	n.frozen = false
	n.Signal(syscall.SIGCONT)
}

// Signal sends a signal to the process. One that has ended does not mind.
func (n *Node) Signal(sig syscall.Signal) {
	n.t.Helper()
	if n.proc.exited() {
		return // its number may be another's by now
	}
	if sig == syscall.SIGTERM {
		n.ordered = true
	}
	if err := n.proc.signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// Running says whether the process exists, frozen or not.
func (n *Node) Running() bool { return n.proc != nil && !n.proc.exited() }

// Exited returns the exit code, or minus the signal, of a process that has ended.
func (n *Node) Exited() (code int, ok bool) {
	if n.Running() {
		return 0, false
	}
	return n.proc.code, true
}

// Pid is the process' number.
func (n *Node) Pid() int { return n.proc.pid }

// URL is the address of the status page: http://host:port. It changes at a restart.
func (n *Node) URL() string { return n.url }

// ConfigPath is the node's configuration file.
func (n *Node) ConfigPath() string { return n.config }

// RuntimeDir is the node's $RUNTIME_DIRECTORY, if the options asked for one.
func (n *Node) RuntimeDir() string { return n.runtimeDir }

// Leading says whether the node answers that it leads. One that is frozen, or
// gone, does not answer.
func (n *Node) Leading() bool {
	return n.Answer("/-/leader") == http.StatusOK
}

// Answer is the HTTP status of a path, or 0 if the node does not answer.
func (n *Node) Answer(path string) int {
	resp, err := n.get(path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (n *Node) get(path string) (*http.Response, error) {
	if !n.Running() || n.frozen || n.url == "" {
		return nil, fmt.Errorf("%s does not run", n.ID)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, n.url+path, nil)
	if err != nil {
		return nil, err
	}
	return n.c.client.Do(req)
}

// Resident is the memory that the process has in RAM, in bytes (VmRSS).
func (n *Node) Resident() int64 {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.proc.pid))
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				n.t.Fatal(err)
			}
			return kib << 10
		}
	}
	n.t.Fatalf("the kernel does not tell the memory of %s", n.ID)
	return 0
}
