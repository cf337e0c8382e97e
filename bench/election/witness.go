package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"baton/internal/heartbeat"
)

// These are the words of a witness. A time follows each word.
const (
	wordStart = "start"
	wordAct   = "act"
	wordEnd   = "end"  // the process got the order to stop
	wordQuit  = "quit" // the process asked, and may no longer act
)

// actEvery is how often a leader acts.
const actEvery = 5 * time.Millisecond

// witness replaces the work of a leader: it only reports the times of the work.
type witness struct {
	out   io.Writer
	quiet bool // the witness reports only starts and ends
}

// lead acts until ctx ends, or until may returns false. It calls may before every act.
func (w *witness) lead(ctx context.Context, may func() bool) {
	tick := time.NewTicker(actEvery)
	defer tick.Stop()
	if w.quiet {
		tick.Stop()
	}
	allowed := func() bool { return may == nil || may() }
	for word := wordStart; ctx.Err() == nil && allowed(); word = wordAct {
		w.tell(word)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if allowed() {
		w.tell(wordEnd)
	} else {
		w.tell(wordQuit)
	}
}

func (w *witness) tell(word string) {
	// A parent that does not listen has ended, and this process ends with it.
	_, _ = fmt.Fprintf(w.out, "%s %d\n", word, heartbeat.Boottime())
}

// listen reads the reports of a witness until it ends.
func listen(in io.Reader, heard func(word string, at heartbeat.Instant)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		word, number, _ := strings.Cut(lines.Text(), " ")
		at, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("a contender wrote %q", lines.Text())
		}
		heard(word, heartbeat.Instant(at))
	}
	return lines.Err()
}
