package state

import (
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// Listed replaces nil lists with empty lists. The JSON of an empty list is [] and not null, so programs can loop over it.
func Listed(s diagnose.Snapshot) diagnose.Snapshot {
	s.Nodes = append([]diagnose.Node{}, s.Nodes...)
	s.Jobs = append([]diagnose.Job{}, s.Jobs...)
	s.Events = append([]diagnose.Event{}, s.Events...)
	return s
}

// Public returns the part of the state that callers without the token may see. It contains no output of commands and no content of records.
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

// PublicRun returns the public part of a run.
func PublicRun(r *diagnose.Run) *diagnose.Run {
	if r == nil {
		return nil
	}
	run := *r
	run.Output, run.Error = "", PublicError(r.Error)
	return &run
}

// PublicBriefs returns the public part of runs.
func PublicBriefs(runs []operate.Brief) []operate.Brief {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Line = ""
	}
	return runs
}

// publicOperation returns the public part of an operation. It removes the examples, because they contain values of records.
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

// PublicError returns the beginning of an error, which names the kind of the error. It removes the rest, which may contain a command's
// output or values of a record.
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
