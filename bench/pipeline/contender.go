package main

import (
	"fmt"

	"baton/bench/internal/rig"
)

// contender is one of the compared programs.
type contender struct {
	name  string
	title string
	// settings are the settings to try; the best one counts. None: there is nothing to set.
	settings func(f flow) []setting
	// start runs it on a flow into a target.
	start func(l *lab, f flow, t target, s setting) (*rig.Process, error)
	share int // of the rows, which suffices for it
	// speedOnly: it shows the speed on the way of a stream, and is not killed.
	speedOnly bool
}

// setting is the setting of a contender.
type setting struct {
	output  string // which of its outputs
	batch   int    // rows of a statement
	writers int    // statements at the same time
	period  string // the longest wait of a batch that is not full
}

func (s setting) String() string {
	if s.batch == 0 {
		return "default settings"
	}
	writers := "1 writer"
	if s.writers > 1 {
		writers = fmt.Sprintf("%d writers", s.writers)
	}
	return fmt.Sprintf("%s, %d rows, %s", s.output, s.batch, writers)
}

const (
	nameBaton   = "baton"
	nameBenthos = "benthos"
	nameNaive   = "naive"
	nameTuned   = "tuned"
)

func contenders() []contender {
	return []contender{batonContender(), benthosContender(), tunedContender(), naiveContender()}
}
