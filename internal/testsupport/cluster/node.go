package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport/child"
)

// Node is one baton process, or what is left of it.
type Node struct {
	ID string

	c          *Cluster
	t          testing.TB
	program    string
	dir        string // which it runs in
	args       []string
	config     string
	log        string
	env        []string
	runtimeDir string

	proc    *child.Process
	url     string
	frozen  bool
	ordered bool  // this harness has ended the process
	from    int64 // where the log of this process begins
}

// launch starts the process.
func (n *Node) launch() {
	n.t.Helper()
	n.from = int64(len(n.Log()))
	cmd := exec.Command(n.program, append([]string{"run", "--config", n.config}, n.args...)...)
	cmd.Dir, cmd.Env = n.dir, n.env
	n.frozen, n.ordered, n.url = false, false, ""
	var err error
	if n.proc, err = child.StartLogged(cmd, n.log); err != nil {
		n.t.Fatal(err)
	}
}

// started is the line in which a node tells, in either format of the log, where its status
// page is.
var started = regexp.MustCompile(`\bstarted\b.*"http": ?"([^"]*)"`)

// awaitStarted waits until the node tells where its status page is.
func (n *Node) awaitStarted() {
	n.t.Helper()
	n.c.Await(startWithin, n.ID+" to start", func() bool {
		if n.proc.Exited() {
			n.t.Fatalf("%s ended at its start with code %d", n.ID, n.proc.Code())
		}
		told := started.FindStringSubmatch(n.logFrom(n.from))
		if told != nil {
			n.url = "http://" + told[1]
		}
		return told != nil
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
	if n.proc.Exited() {
		return
	}
	n.ordered = true
	n.Signal(syscall.SIGKILL)
	<-n.proc.Done()
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
	if !n.proc.Wait(timeout) {
		n.t.Fatalf("%s has not ended after %v", n.ID, timeout)
	}
	n.ordered = true // it was waited for: its end is no surprise
	return n.proc.Code()
}

// Freeze stops the process where it is (SIGSTOP): a machine that is paused.
func (n *Node) Freeze() {
	n.t.Helper()
	n.frozen = true
	if err := n.proc.Freeze(); err != nil {
		n.t.Fatal(err)
	}
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
	if n.proc.Exited() {
		return // its number may be another's by now
	}
	if sig == syscall.SIGTERM {
		n.ordered = true
	}
	if err := n.proc.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// Running says whether the process exists, frozen or not.
func (n *Node) Running() bool { return n.proc != nil && !n.proc.Exited() }

// Exited returns the exit code, or minus the signal, of a process that has ended.
func (n *Node) Exited() (code int, ok bool) {
	if n.Running() {
		return 0, false
	}
	return n.proc.Code(), true
}

// Pid is the process' number.
func (n *Node) Pid() int { return n.proc.Pid() }

// URL is the address of the status page: http://host:port. It changes at a restart.
func (n *Node) URL() string { return n.url }

// Addr is the host:port of the status page.
func (n *Node) Addr() string { return strings.TrimPrefix(n.url, "http://") }

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

// Resident is the memory that the process has in RAM, in bytes.
func (n *Node) Resident() int64 { n.t.Helper(); return n.memory("VmRSS:") }

// Anonymous is what the process has written itself of that, in bytes: the rest are pages of the program's file.
func (n *Node) Anonymous() int64 { n.t.Helper(); return n.memory("RssAnon:") }

// Peak is the most memory that the process has had in RAM, in bytes.
func (n *Node) Peak() int64 { n.t.Helper(); return n.memory("VmHWM:") }

func (n *Node) memory(of string) int64 {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.proc.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, of); ok {
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
