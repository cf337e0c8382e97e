package alert

import (
	"fmt"
	"strings"
	"time"

	"baton/internal/job"
	"baton/internal/text"
)

// textMost is the maximum length, in bytes, of an error that a sentence of a notification quotes.
const textMost = 300

func failedText(rec job.Record, failures int) string {
	var b strings.Builder
	switch rec.State {
	case job.StateTimedOut:
		fmt.Fprintf(&b, "Job %s timed out on %s", rec.Job, rec.Term.NodeID)
	case job.StateLost:
		fmt.Fprintf(&b, "A run of job %s was lost with its leader, %s", rec.Job, rec.Term.NodeID)
	default:
		fmt.Fprintf(&b, "Job %s failed on %s", rec.Job, rec.Term.NodeID)
	}
	if failures > 1 {
		fmt.Fprintf(&b, ", the %s time in a row", ordinal(failures))
	}
	if rec.Pauses {
		b.WriteString(", and is paused until an operator resumes it")
	}
	if rec.Error != "" {
		b.WriteString(": " + text.Clip(text.OneLine(rec.Error), textMost))
	}
	return b.String()
}

func recoveredText(name string, failures int, late bool) string {
	switch {
	case failures == 1:
		return fmt.Sprintf("Job %s is well again after a failure", name)
	case failures > 1:
		return fmt.Sprintf("Job %s is well again after %d failures in a row", name, failures)
	case late:
		return fmt.Sprintf("Job %s is no longer late", name)
	}
	return fmt.Sprintf("Job %s is well again", name)
}

func missedText(m job.Missed) string {
	slots, at := "A slot", "at "+text.Stamp(m.Slot)
	if m.Count > 1 {
		slots, at = fmt.Sprintf("%d slots", m.Count), "up to "+text.Stamp(m.Slot)
		if !m.First.IsZero() {
			at = "from " + text.Stamp(m.First) + " to " + text.Stamp(m.Slot)
		}
	}
	what := fmt.Sprintf("%s of job %s, %s, did not run: %s", slots, m.Job, at, missedWords(m.Reason))
	if m.Err != nil {
		what += ": " + text.Clip(text.OneLine(m.Err.Error()), textMost)
	}
	return what
}

func missedWords(r job.Reason) string {
	switch r {
	case job.ReasonOverlap:
		return "an earlier run was going on"
	case job.ReasonNoLeader:
		return "no node led"
	case job.ReasonLate:
		return "the leader reached it too late"
	case job.ReasonLedger:
		return "redis refused the claim of the slot"
	case job.ReasonConcurrency:
		return "the limit of concurrent runs was reached"
	case job.ReasonUnknown:
		return "an earlier leader did not run it, and recorded no reason"
	}
	return string(r)
}

func lettersText(name string, count int64) string {
	records := "a record"
	if count > 1 {
		records = fmt.Sprintf("%d records", count)
	}
	return fmt.Sprintf("Job %s put %s aside as dead letters: baton dead list --count --job %s shows why", name, records, name)
}

func lagText(name string, lag, lateAfter time.Duration) string {
	return fmt.Sprintf("Job %s is late: its table is %v behind redis, more than %v", name, text.Duration(lag), lateAfter)
}

func overdueText(name string, slot time.Time, lateAfter time.Duration) string {
	return fmt.Sprintf("Job %s is late: no run has succeeded since its slot at %s, more than %v ago", name, text.Stamp(slot), lateAfter)
}

func leaderText(node, lockKey, from, why string) string {
	words := map[string]string{
		whyCrashed: "ended without releasing the lock", "lost": "lost the lock", "expired": "could not renew its lease in time",
		"stepped_down": "stepped down", "released": "was shut down",
	}[why]
	switch {
	case words == "":
		words = why
	case from == node:
		return fmt.Sprintf("%s leads %s again: it %s before", node, lockKey, words)
	}
	return fmt.Sprintf("%s leads %s: %s %s", node, lockKey, from, words)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprint(n, suffix)
}
