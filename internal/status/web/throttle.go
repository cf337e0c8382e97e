package web

import (
	"sync"
	"time"
)

// repeatAfter is how often the log has a line of what may happen many times a second.
const repeatAfter = time.Minute

// Throttle logs what others can make happen as often as they like: the first time at
// once, and from then on once a minute how often it has happened since, until a minute
// passes without. The zero value is ready.
type Throttle struct {
	mu      sync.Mutex
	quiet   bool // a minute has begun
	skipped int
	say     func(count int) // of the last time
}

// Log has say called: now, or at the end of the minute unless a later one takes its place.
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
	say(1) // a log that hangs holds up no other
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
