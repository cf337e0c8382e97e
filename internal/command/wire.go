package command

import (
	"encoding/json"
	"io"
	"time"
)

// order is what Run tells the warden, a line of JSON each. The first one has Setup.
type order struct {
	Setup  *setup  `json:"setup,omitempty"`
	Until  instant `json:"until,omitempty"`  // everything must be dead then
	Signal int     `json:"signal,omitempty"` // pass it on
	Stop   instant `json:"stop,omitempty"`   // SIGTERM now, SIGKILL then
}

// setup is what the warden needs beside the command line and the environment,
// which it has from its own.
type setup struct {
	Path  string        `json:"path"`
	Grace time.Duration `json:"grace"`
	Leave bool          `json:"leave,omitempty"`
	// Group is the process group to run in: a terminal's, so that its keys reach
	// the command as if there were no baton. 0 is a new one.
	Group int `json:"group,omitempty"`
}

// report is what the warden tells.
type report struct {
	Pid    int     `json:"pid,omitempty"`   // the command has started
	Errno  int     `json:"errno,omitempty"` // it cannot be started
	Result *Result `json:"result,omitempty"`
}

// instant is a reading of CLOCK_BOOTTIME, which all processes of a machine share,
// in nanoseconds. Zero is none.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }
func (i instant) sub(j instant) time.Duration { return time.Duration(i - j) }
func earlier(a, b instant) instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// receive passes on what comes from the other side until it closes.
func receive[T any](r io.Reader) <-chan T {
	messages := make(chan T)
	go func() {
		defer close(messages)
		for d := json.NewDecoder(r); ; {
			var m T
			if d.Decode(&m) != nil {
				return
			}
			messages <- m
		}
	}()
	return messages
}
