package main

import (
	"fmt"

	"baton/bench/internal/rig"
)

// contender is one of the compared programs.
type contender struct {
	name  string
	title string
	// settings returns the settings to try, of which the best counts. It is nil if there is nothing to set.
	settings func(f flow) []setting
	// start runs the contender on a flow into a target.
	start func(l *lab, f flow, t target, s setting) (*rig.Process, error)
	share int // the contender writes only one row in share, because it is slow
	// speedOnly means that only the contender's speed with a stream is measured, and that it is not killed.
	speedOnly bool
}

// setting is the setting of a contender.
type setting struct {
	output  string // the output of the contender to use
	batch   int    // rows in one statement
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
