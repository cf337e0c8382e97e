package jobcmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
)

// pauseEnd says when a pause ends without an order to resume: after a duration, at a time, or never.
type pauseEnd struct {
	after time.Duration
	until string
}

func (p *pauseEnd) addFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&p.after, "for", 0, "end the pause after this `duration`")
	cmd.Flags().StringVar(&p.until, "until", "", "end the pause at this `time`")
	cmd.MarkFlagsMutuallyExclusive("for", "until")
}

// check returns an error if the end is invalid.
func (p *pauseEnd) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("for") && p.after <= 0:
		return cmdline.UsageError(fmt.Errorf("--for %v: must be a duration above 0", p.after))
	case cmd.Flags().Changed("until") && p.until == "":
		return cmdline.UsageError(fmt.Errorf("--until is empty: write a time such as %s", untilForms))
	}
	return nil
}

// at returns the end of the pause, or the zero time if the pause has no end.
func (p *pauseEnd) at(zone *time.Location, now time.Time) (time.Time, error) {
	if p.after > 0 {
		return now.Add(p.after).In(zone), nil
	}
	if p.until == "" {
		return time.Time{}, nil
	}
	return parseUntil(p.until, zone, now)
}

const untilForms = "2006-01-02T15:04:05Z, '2006-01-02 15:04' or 15:04"

// parseUntil parses a time in the future. A time of day means its next occurrence.
func parseUntil(text string, zone *time.Location, now time.Time) (time.Time, error) {
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		until, err = time.ParseInLocation("2006-01-02 15:04", text, zone)
	}
	if err != nil {
		var clock time.Time
		if clock, err = time.Parse("15:04", text); err != nil {
			return time.Time{}, fmt.Errorf("--until %q: write a time such as %s", text, untilForms)
		}
		year, month, day := now.In(zone).Date()
		for ; !until.After(now); day++ {
			until = time.Date(year, month, day, clock.Hour(), clock.Minute(), 0, 0, zone)
		}
	}
	if !until.After(now) {
		return time.Time{}, fmt.Errorf("--until %q has passed: it is %s", text, show.Moment(now.In(zone)))
	}
	return until.In(zone), nil
}
