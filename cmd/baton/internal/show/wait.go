package show

import (
	"io"
	"os"
	"sync"
	"time"
)

// Counter is one line on a terminal that shows how far a long command is. Elsewhere it
// is nothing.
type Counter struct {
	w     io.Writer
	shown time.Time
	dirty bool
}

// NewCounter is for a command that writes to w.
func NewCounter(w io.Writer) *Counter {
	f, ok := w.(*os.File)
	if !ok || !IsTerminal(f) {
		return &Counter{}
	}
	return &Counter{w: f, shown: time.Now()}
}

const counterEvery = 200 * time.Millisecond

// Show shows how many are done, once in a while.
func (p *Counter) Show(done, all int, what string) {
	if p.w == nil || time.Since(p.shown) < counterEvery {
		return
	}
	p.shown, p.dirty = time.Now(), true
	_ = Say(p.w, "\r%d of %d %s\x1b[K", done, all, what)
}

// Clear takes the line away before something else is printed.
func (p *Counter) Clear() {
	if p.dirty {
		_ = Say(p.w, "\r\x1b[K")
		p.dirty = false
	}
}

// nameAfter is how long something is waited for without a word.
const nameAfter = time.Second

// Waits names slow steps that the command waits for, one a line.
type Waits struct {
	w    io.Writer
	mu   sync.Mutex
	slow map[string]*time.Timer
}

// NewWaits is for a command that writes to w.
func NewWaits(w io.Writer) *Waits { return &Waits{w: w, slow: map[string]*time.Timer{}} }

// Note says that something is waited for, or that this is over.
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
	if s.slow[subject] != nil { // it may be over by now
		_ = Say(s.w, "checking %s ...\n", subject) // standard error is the last that there is
	}
}

// End is called when nothing is waited for any more.
func (s *Waits) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.slow {
		t.Stop()
	}
	clear(s.slow)
}
