package redisledger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"baton/internal/job"
)

const (
	// maxErrorText is the maximum length of a run's error that is kept, in bytes.
	maxErrorText = 4096
	// maxOutputTail is the maximum length of a command's output in a history entry, in bytes.
	maxOutputTail = 4096
)

// startFields returns the fields that are stored when a run starts. The id comes first and the state second, because job_finish.lua
// expects them in these places.
func startFields(rec job.Record) []any {
	return []any{
		"id", rec.ID, "state", string(rec.State), "slot", rec.Slot.UnixMilli(),
		"trigger", string(rec.Trigger), "attempt", rec.Attempt, "by", rec.By, "forced", rec.Forced,
		"node", rec.Term.NodeID, "owner", rec.Term.Owner, "epoch", rec.Term.Epoch,
		"started", rec.Started.UnixMilli(),
	}
}

// encodeOpen encodes the fields of a started run into one text.
func encodeOpen(rec job.Record) (string, error) {
	pairs := startFields(rec)
	fields := make(map[string]string, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = fmt.Sprint(pairs[i+1])
	}
	text, err := json.Marshal(fields)
	return string(text), err
}

// endFields returns the fields that are stored when a run ends.
func endFields(rec job.Record) []any {
	code := any("")
	if rec.Result.ExitCode != nil {
		code = *rec.Result.ExitCode
	}
	return []any{
		"finished", rec.Finished.UnixMilli(), "rows", rec.Result.Rows, "deleted", rec.Result.Deleted, "dead", rec.Result.Dead,
		"exit_code", code, "error", clipError(rec.Error), "output", tailOf(rec.Result.Output),
	}
}

// tailOf returns the last part of a command's output.
func tailOf(output string) string {
	if len(output) > maxOutputTail {
		output = "…" + output[len(output)-maxOutputTail:]
	}
	return strings.ToValidUTF8(output, "\uFFFD")
}

func clipError(text string) string {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// recordOf decodes the fields of a run that startFields and endFields have returned. The names of these fields begin with the
// prefix. It returns nil if the fields contain no run.
func recordOf(name string, fields map[string]string, prefix string) *job.Record {
	if fields[prefix+"id"] == "" {
		return nil
	}
	rec := readRecord(name, fields, prefix)
	return &rec
}

func readRecord(name string, fields map[string]string, prefix string) job.Record {
	field := func(f string) string { return fields[prefix+f] }
	rec := job.Record{
		Run: job.Run{
			ID: field("id"), Job: name, Slot: millisField(field("slot")),
			Trigger: job.Trigger(field("trigger")), Attempt: int(intField(field("attempt"))),
			Term: job.Term{NodeID: field("node"), Owner: field("owner"), Epoch: intField(field("epoch"))},
			By:   field("by"), Forced: boolField(field("forced")),
		},
		State:    job.State(field("state")),
		Started:  millisField(field("started")),
		Finished: millisField(field("finished")),
		Result: job.Result{Rows: intField(field("rows")), Deleted: intField(field("deleted")), Dead: intField(field("dead")),
			Output: field("output")},
		Error: field("error"),
	}
	if code, err := strconv.Atoi(field("exit_code")); err == nil {
		rec.Result.ExitCode = &code
	}
	return rec
}

// boolField reads a bool as redigo ("1") or Go ("true") writes it.
func boolField(s string) bool { return s == "1" || s == "true" }

// intField reads a number. It returns 0 for a missing or unreadable number, because an operator prefers a page with a gap to no page.
func intField(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// countField reads a number, and returns nil if the number is missing or unreadable.
func countField(fields map[string]string, name string) *int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func millisField(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	return time.UnixMilli(intField(s)).UTC()
}
