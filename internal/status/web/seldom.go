package web

import (
	"sync"
	"time"
)

// seldomEvery is how often the log tells of what may happen many times a second.
const seldomEvery = time.Minute

// Seldom tells of what others can make happen as often as they like: of the first time at
// once, and from then on once a minute how often it has happened since, until a minute
// passes without. The zero value is ready.
type Seldom struct {
	mu     sync.Mutex
	quiet  bool // a minute has begun
	untold int
	say    func(count int) // of the last time
}

// Tell has say called: now, or at the end of the minute unless a later one takes its place.
func (s *Seldom) Tell(say func(count int)) {
	s.mu.Lock()
	if s.quiet {
		s.untold, s.say = s.untold+1, say
		s.mu.Unlock()
		return
	}
	s.quiet = true
	s.mu.Unlock()
	time.AfterFunc(seldomEvery, s.minute)
	say(1) // a log that hangs holds up nobody but this one
}

func (s *Seldom) minute() {
	s.mu.Lock()
	count, say := s.untold, s.say
	s.quiet, s.untold, s.say = count > 0, 0, nil
	s.mu.Unlock()
	if count > 0 {
		time.AfterFunc(seldomEvery, s.minute)
		say(count)
	}
}
