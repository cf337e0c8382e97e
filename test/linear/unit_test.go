package linear

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"baton/internal/testsupport/child"
	"baton/internal/testsupport/goclock"
	"baton/test/linear/wire"
)

const (
	restartAfter = 200 * time.Millisecond
	endWithin    = time.Minute // a long time, because two cores may run all tests at once
	// dieAfterThaw is the maximum time after SIGCONT at which a leader may still die because it cannot stop.
	dieAfterThaw = 1500 * time.Millisecond
)

func nodeID(i int) string { return fmt.Sprintf("n%d", i) }

// unit is a node and its supervisor, which restarts the node whenever it has ended.
type unit struct {
	l     *lab
	index int
	setup wire.Setup // without the values that differ between the lives
	dir   string
	done  chan struct{} // the supervisor has ended

	mu      sync.Mutex
	life    int
	pid     int // 0 while the node does not run
	input   io.WriteCloser
	frozen  bool
	thawed  time.Time
	killed  bool // the test has killed the node
	ordered time.Time
	last    bool // the node must not be started again
}

func (u *unit) file(name string) string { return filepath.Join(u.dir, nodeID(u.index)+name) }

// supervise runs the node, one life after the other, until end is called.
func (u *unit) supervise() {
	defer close(u.done)
	for {
		process, err := u.start()
		if err != nil {
			u.l.wrong("%s cannot be started: %v", nodeID(u.index), err)
			return
		}
		u.judgeEnd(process.Code())
		u.mu.Lock()
		last := u.last
		u.mu.Unlock()
		if last {
			return
		}
		time.Sleep(restartAfter)
	}
}

// start begins the next life. The node's process ends when this process ends, for any reason.
func (u *unit) start() (*child.Process, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.setup
	s.Seed += uint64(u.life)
	s.History = u.file(fmt.Sprintf("-%d.jsonl", u.life))
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(u.l.program, string(text))
	cmd.Env = append(os.Environ(), goclock.Env+"="+u.file(".skew"), "GOMAXPROCS=2")
	if u.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	u.l.history.add(u.index, s.History)
	process, err := child.StartLogged(cmd, u.file(".log"))
	if err != nil {
		return nil, err
	}
	u.pid, u.frozen, u.killed, u.ordered, u.thawed = process.Pid(), false, false, time.Time{}, time.Time{}
	u.life++
	if u.last { // the order to end came between two lives
		u.ordered = time.Now()
		_ = u.input.Close()
	}
	return process, nil
}

// judgeEnd records how a life ended, and whether it was allowed to end like that.
func (u *unit) judgeEnd(code int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pid = 0
	died := code == -int(syscall.SIGKILL)
	how := fmt.Sprintf("%s ended with code %d", nodeID(u.index), code)
	switch {
	case u.killed && died, !u.ordered.IsZero() && code == 0:
	case died && time.Since(u.thawed) < dieAfterThaw:
		how += ", having woken up beyond its lease"
	default:
		log, _ := os.ReadFile(u.file(".log"))
		u.l.wrong("%s, and nobody had asked it to; its log ends with:\n%s", how, log[max(0, len(log)-2000):])
	}
	u.l.log.add("%s", how)
}

func (u *unit) running() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pid != 0
}

func (u *unit) signal(sig syscall.Signal) {
	if u.pid != 0 {
		_ = syscall.Kill(u.pid, sig) // the process may just have ended
	}
}

func (u *unit) kill() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.killed = true
	u.signal(syscall.SIGKILL)
}

// end tells the node to end in order, which it must obey unless something hinders it.
func (u *unit) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ordered = time.Now()
	if u.pid != 0 {
		_ = u.input.Close()
	}
}

// meddle tells the node to, until that moment.
func (u *unit) meddle(until int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pid != 0 {
		_, _ = fmt.Fprintln(u.input, until) // the process may just have ended
	}
}

func (u *unit) freeze() (life int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.frozen = true
	u.signal(syscall.SIGSTOP)
	return u.life
}

// thaw ends the freezing of that life; another one was never frozen.
func (u *unit) thaw(life int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.life == life {
		u.frozen, u.thawed = false, time.Now()
		u.signal(syscall.SIGCONT)
	}
}

// skew sets the node's wall clock off by d.
func (u *unit) skew(d time.Duration) {
	if err := goclock.Step(u.file(".skew"), d); err != nil {
		u.l.wrong("step the clock of %s: %v", nodeID(u.index), err)
	}
}

// retire ends the node for good, and waits.
func (u *unit) retire() {
	u.mu.Lock()
	u.last = true
	u.mu.Unlock()
	u.end()
	select {
	case <-u.done:
	case <-time.After(endWithin):
		u.l.wrong("%s has not ended %v after it was told to", nodeID(u.index), endWithin)
		u.kill()
		<-u.done
	}
}
