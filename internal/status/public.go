package status

import "strings"

// listed has no list that is null: programs may loop over them unseen.
func listed(s Snapshot) Snapshot {
	s.Nodes = append([]Node{}, s.Nodes...)
	s.Jobs = append([]Job{}, s.Jobs...)
	s.Events = append([]Event{}, s.Events...)
	return s
}

// public is a state for everybody: without what commands print, and what stands in records.
func public(s Snapshot) Snapshot {
	s.Jobs = append([]Job{}, s.Jobs...)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Running, j.LastRun = publicRun(j.Running), publicRun(j.LastRun)
		j.Open = append([]Run(nil), j.Open...)
		for k := range j.Open {
			j.Open[k] = *publicRun(&j.Open[k])
		}
	}
	return s
}

func publicRun(r *Run) *Run {
	if r == nil {
		return nil
	}
	run := *r
	run.Output, run.Error = "", publicError(r.Error)
	return &run
}

// publicError is the beginning of an error, which says of what kind it is: what follows
// may be a command's last words, or values of a record.
func publicError(text string) string {
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
