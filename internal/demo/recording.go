package demo

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// recording records a run of the demo, so that a picture of the run can be drawn. A nil recording records nothing.
type recording struct {
	mu      sync.Mutex
	began   time.Time // start of the traffic
	ended   time.Time
	leaders []leaderSpan
	faults  []leaderFault
	frames  []reading
	every   int // one of so many readings becomes a frame
	passed  int // readings since the last frame
}

// mostFrames limits the number of frames in a recording, because a demo may run for days. The limit is higher than the width of the picture
// in pixels.
const mostFrames = 1000

// openPicture checks before the run that the file of the picture can be written. It returns an error if not.
func openPicture(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--picture: %w", err)
	}
	return file.Close()
}

// leaderSpan is a period in which the same node leads. The field node is "" if no node leads in that period.
type leaderSpan struct {
	node string
	from time.Time
}

// leaderFault records that a leader was killed or frozen.
type leaderFault struct {
	node string
	at   time.Time
	how  syscall.Signal
}

// begin sets the start of the time that the picture shows, and end sets its end.
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

// leads records which node leads from the given time on.
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

// struck returns the time of a fault of this node, if one happened between the times from and to.
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

// span returns how long the traffic lasted.
func (f *recording) span() time.Duration { return f.ended.Sub(f.began) }

// shown returns the frames that lie within the time that the picture shows.
func (f *recording) shown() []reading {
	return slices.DeleteFunc(slices.Clone(f.frames), func(r reading) bool { return r.at.Before(f.began) || r.at.After(f.ended) })
}
