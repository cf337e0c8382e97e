package web

import (
	"sync"
	"time"
)

// repeatAfter is the shortest time between two log lines of a Throttle.
const repeatAfter = time.Minute

// Throttle limits the log lines of an event that clients can cause at will. It logs the first
// event at once. Then it logs the count of further events once a minute, until a minute
// passes without one. The zero value is ready.
type Throttle struct {
	mu      sync.Mutex
	quiet   bool // within a minute after a line
	skipped int
	say     func(count int) // of the last skipped event
}

// Log calls say now, or at the end of the minute. A later Log in that minute replaces say.
func (s *Throttle) Log(say func(count int)) {
	s.mu.Lock()
	if s.quiet {
		s.skipped, s.say = s.skipped+1, say
		s.mu.Unlock()
		return
	}
	s.quiet = true
	s.mu.Unlock()
	time.AfterFunc(repeatAfter, s.minute)
	say(1) // after Unlock: a log that hangs must not block other callers
}

func (s *Throttle) minute() {
	s.mu.Lock()
	count, say := s.skipped, s.say
	s.quiet, s.skipped, s.say = count > 0, 0, nil
	s.mu.Unlock()
	if count > 0 {
		time.AfterFunc(repeatAfter, s.minute)
		say(count)
	}
}
