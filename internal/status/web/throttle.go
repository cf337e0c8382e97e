package web

import (
	"sync"
	"time"
)

// repeatAfter is the minimum time between two log lines of a Throttle.
const repeatAfter = time.Minute

// Throttle limits the log lines about an event that clients can cause at will. It logs the first event immediately. Then it logs the count
// of further events once per minute, until a minute passes without an event. The zero value is ready to use.
type Throttle struct {
	mu      sync.Mutex
	quiet   bool // a line was logged within the last minute
	skipped int
	say     func(count int) // the function of the last skipped event
}

// Log calls the function say immediately, or at the end of the minute if a line was logged less than a minute ago. In the second case, only
// the function of the last call of Log is called.
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
	say(1) // after Unlock, because a log that hangs must not block other callers
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
