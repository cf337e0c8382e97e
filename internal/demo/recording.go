package demo

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// recording records a run for its picture. A nil recording records nothing.
type recording struct {
	mu      sync.Mutex
	began   time.Time // of the traffic
	ended   time.Time
	leaders []leaderSpan
	faults  []leaderFault
	frames  []reading
	every   int // one of that many readings becomes a frame
	passed  int // readings since the last frame
}

// mostFrames bounds the frames of a recording: it is more than the picture has pixels across, and a demo may run for days.
const mostFrames = 1000

// openPicture refuses a file that cannot be written, before the run that it would show.
func openPicture(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--picture: %w", err)
	}
	return file.Close()
}

// leaderSpan is a time with the same leader; node is "" while none leads.
type leaderSpan struct {
	node string
	from time.Time
}

// leaderFault is a leader's death or freeze.
type leaderFault struct {
	node string
	at   time.Time
	how  syscall.Signal
}

// begin begins the time that the picture shows, and end ends it.
func (f *recording) begin(at time.Time) {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.began = at
	}
}

func (f *recording) end(at time.Time) {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = at
	}
}

// leads records the leader at a time.
func (f *recording) leads(node string, at time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.leaders); n == 0 || f.leaders[n-1].node != node {
		f.leaders = append(f.leaders, leaderSpan{node, at})
	}
}

func (f *recording) fault(node string, at time.Time, how syscall.Signal) {
	if f == nil || how == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, leaderFault{node, at, how})
}

// struck is the time of a node's fault between two times.
func (f *recording) struck(node string, from, to time.Time) (time.Time, bool) {
	for _, s := range f.faults {
		if s.node == node && !s.at.Before(from) && s.at.Before(to) {
			return s.at, true
		}
	}
	return time.Time{}, false
}

func (f *recording) frame(r reading) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passed++; f.passed < f.every {
		return
	}
	f.passed = 0
	f.frames = append(f.frames, r)
	if len(f.frames) < mostFrames {
		return
	}
	half := f.frames[:0]
	for i := 1; i < len(f.frames); i += 2 {
		half = append(half, f.frames[i])
	}
	f.frames, f.every = half, 2*max(f.every, 1)
}

// span is how long the traffic lasted.
func (f *recording) span() time.Duration { return f.ended.Sub(f.began) }

// shown are the frames of the time that the picture shows.
func (f *recording) shown() []reading {
	return slices.DeleteFunc(slices.Clone(f.frames), func(r reading) bool { return r.at.Before(f.began) || r.at.After(f.ended) })
}
