package show

import (
	"io"
	"os"
	"sync"
	"time"
)

// Counter shows the progress of a long command in one line of a terminal. It prints nothing if the output is no terminal.
type Counter struct {
	w     io.Writer
	shown time.Time
	dirty bool
}

// NewCounter returns the Counter of a command that writes to w.
func NewCounter(w io.Writer) *Counter {
	f, ok := w.(*os.File)
	if !ok || !IsTerminal(f) {
		return &Counter{}
	}
	return &Counter{w: f, shown: time.Now()}
}

const counterEvery = 200 * time.Millisecond

// Show updates the line, but at most once per counterEvery.
func (p *Counter) Show(done, all int, what string) {
	if p.w == nil || time.Since(p.shown) < counterEvery {
		return
	}
	p.shown, p.dirty = time.Now(), true
	_ = Say(p.w, "\r%d of %d %s\x1b[K", done, all, what)
}

// Clear removes the line before something else is printed.
func (p *Counter) Clear() {
	if p.dirty {
		_ = Say(p.w, "\r\x1b[K")
		p.dirty = false
	}
}

// nameAfter is how long a command waits for a step before it prints a message about the step.
const nameAfter = time.Second

// Waits names the slow steps that the command waits for, each in its own line.
type Waits struct {
	w    io.Writer
	mu   sync.Mutex
	slow map[string]*time.Timer
}

// NewWaits returns the Waits of a command that writes to w.
func NewWaits(w io.Writer) *Waits { return &Waits{w: w, slow: map[string]*time.Timer{}} }

// Note records that the command begins to wait for subject. If the argument over is true, Note records that the wait has ended.
func (s *Waits) Note(subject string, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over {
		if t := s.slow[subject]; t != nil {
			t.Stop()
			delete(s.slow, subject)
		}
		return
	}
	s.slow[subject] = time.AfterFunc(nameAfter, func() { s.name(subject) })
}

func (s *Waits) name(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow[subject] != nil { // the wait may have ended
		_ = Say(s.w, "checking %s ...\n", subject) // there is no other place to report a failed write to standard error
	}
}

// End stops all messages. The command calls it when it no longer waits for anything.
func (s *Waits) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.slow {
		t.Stop()
	}
	clear(s.slow)
}
