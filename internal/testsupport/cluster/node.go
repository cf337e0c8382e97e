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
	"baton/internal/testsupport/ranout"
)

// Node is one baton process that runs or has ended.
type Node struct {
	ID string

	c          *Cluster
	t          testing.TB
	program    string
	dir        string // working directory of the process
	args       []string
	config     string
	log        string
	env        []string
	runtimeDir string

	proc    *child.Process
	url     string
	frozen  bool
	ordered bool  // the test expects the process to end
	from    int64 // where the log of the present process begins
}

// launch starts the node's process.
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

// started matches the log line with the address of a node's status page, in either format of the log.
var started = regexp.MustCompile(`\bstarted\b.*"http": ?"([^"]*)"`)

// awaitStarted waits until the node has logged the address of its status page.
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

// Upgrade ends the node by SIGTERM, as systemd does, and starts it with another program.
func (n *Node) Upgrade(program string) {
	n.t.Helper()
	if code := n.Terminate(startWithin); code != 0 {
		n.t.Fatalf("%s ended with code %d before its upgrade", n.ID, code)
	}
	n.program = program
	n.Start()
}

// Kill ends the process with SIGKILL, like a crash. It does nothing if the process has ended.
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

// Wait waits until the process has ended. It returns the exit code, or minus the number of the signal that ended the process.
func (n *Node) Wait(timeout time.Duration) int {
	n.t.Helper()
	if !n.proc.Wait(timeout) {
		ranout.Fatal(n.t, "the end of "+n.ID, fmt.Sprintf("%s has not ended after %v", n.ID, timeout))
	}
	n.ordered = true // the test expected this end
	return n.proc.Code()
}

// Freeze stops the process with SIGSTOP, like a paused machine.
func (n *Node) Freeze() {
	n.t.Helper()
	n.frozen = true
	if err := n.proc.Freeze(); err != nil {
		n.t.Fatal(err)
	}
}

// Thaw lets a frozen process continue.
func (n *Node) Thaw() {
	n.t.Helper()
	n.frozen = false
	n.Signal(syscall.SIGCONT)
}

// Signal sends a signal to the process. It does nothing if the process has ended.
func (n *Node) Signal(sig syscall.Signal) {
	n.t.Helper()
	if n.proc.Exited() {
		return // another process may have its process id by now
	}
	if sig == syscall.SIGTERM {
		n.ordered = true
	}
	if err := n.proc.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// Running reports whether the process exists, frozen or not.
func (n *Node) Running() bool { return n.proc != nil && !n.proc.Exited() }

// Exited returns the exit code, or minus the number of the signal, if the process has ended.
func (n *Node) Exited() (code int, ok bool) {
	if n.Running() {
		return 0, false
	}
	return n.proc.Code(), true
}

// Pid returns the process id.
func (n *Node) Pid() int { return n.proc.Pid() }

// URL returns the address of the status page: http://host:port. It changes at a restart.
func (n *Node) URL() string { return n.url }

// Addr returns the host:port of the status page.
func (n *Node) Addr() string { return strings.TrimPrefix(n.url, "http://") }

// ConfigPath returns the path of the node's configuration file.
func (n *Node) ConfigPath() string { return n.config }

// RuntimeDir returns the node's $RUNTIME_DIRECTORY, if Options.RuntimeDir is set.
func (n *Node) RuntimeDir() string { return n.runtimeDir }

// Leading reports whether the node answers that it leads. A frozen or ended node does not answer.
func (n *Node) Leading() bool {
	return n.Answer("/-/leader") == http.StatusOK
}

// Answer returns the HTTP status code of the node's answer to a request for path, or 0 if the node does not answer.
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

// Resident returns the memory that the process has in RAM, in bytes.
func (n *Node) Resident() int64 { n.t.Helper(); return n.memory("VmRSS:") }

// Anonymous returns how much of the process' memory in RAM the process itself has written, in bytes. The rest of the memory in RAM consists
// of pages of the program's file.
func (n *Node) Anonymous() int64 { n.t.Helper(); return n.memory("RssAnon:") }

// Peak returns the largest amount of memory that the process has had in RAM so far, in bytes.
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
	n.t.Fatalf("cannot read the memory use of %s from the kernel", n.ID)
	return 0
}
