package state

import (
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// Listed has no list that is null: programs may loop over them unseen.
func Listed(s diagnose.Snapshot) diagnose.Snapshot {
	s.Nodes = append([]diagnose.Node{}, s.Nodes...)
	s.Jobs = append([]diagnose.Job{}, s.Jobs...)
	s.Events = append([]diagnose.Event{}, s.Events...)
	return s
}

// Public is a state for everybody: without what commands print, and what stands in records.
func Public(s diagnose.Snapshot) diagnose.Snapshot {
	s.Jobs = append([]diagnose.Job{}, s.Jobs...)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Running, j.LastRun = PublicRun(j.Running), PublicRun(j.LastRun)
		j.BacklogUnknown, j.Definition = PublicError(j.BacklogUnknown), ""
		j.Operation, j.Verified = publicOperation(j.Operation), publicOperation(j.Verified)
		j.Open = append([]diagnose.Run(nil), j.Open...)
		for k := range j.Open {
			j.Open[k] = *PublicRun(&j.Open[k])
		}
	}
	return s
}

// PublicRun is a run likewise.
func PublicRun(r *diagnose.Run) *diagnose.Run {
	if r == nil {
		return nil
	}
	run := *r
	run.Output, run.Error = "", PublicError(r.Error)
	return &run
}

// PublicBriefs are runs likewise.
func PublicBriefs(runs []operate.Brief) []operate.Brief {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Line = ""
	}
	return runs
}

// publicOperation is an operation likewise: examples have values of records.
func publicOperation(o *diagnose.Operation) *diagnose.Operation {
	if o == nil {
		return nil
	}
	shown := *o
	shown.Error, shown.Progress.Result.Examples, shown.Progress.Result.Notes = PublicError(o.Error), nil, nil
	for _, note := range o.Progress.Result.Notes {
		shown.Progress.Result.Notes = append(shown.Progress.Result.Notes, PublicError(note))
	}
	return &shown
}

// PublicError is the beginning of an error, which says of what kind it is: what follows
// may be a command's last words, or values of a record.
func PublicError(text string) string {
	line, _, more := strings.Cut(text, "\n")
	kind, _, cut := strings.Cut(line, ": ")
	if at := strings.IndexAny(kind, "\"'`"); at >= 0 {
		kind, cut = kind[:at], true
	}
	if cut || more {
		return strings.TrimSpace(kind) + " …"
	}
	return kind
}
