package slots

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"baton/internal/testsupport/cluster"
)

// told is an entry of `baton job history -o json`, as far as the judge looks at it.
type told struct {
	Run *struct {
		ID      string    `json:"run_id"`
		State   string    `json:"state"`
		Slot    time.Time `json:"slot"`
		Attempt int       `json:"attempt"`
	} `json:"run"`
	Missed *struct {
		Reason string    `json:"reason"`
		Count  int       `json:"count"`
		First  time.Time `json:"first"`
		Last   time.Time `json:"last"`
	} `json:"missed"`
}

// historyText is what an operator is told of a job.
func (l *lab) historyText(s spec) (string, error) {
	r := l.cluster.Command("job", "history", s.name, "-n", "10000", "-o", "json")
	if r.Code != 0 {
		return "", fmt.Errorf("the history of %s cannot be read: %s", s.name, r.Stderr)
	}
	return r.Stdout, nil
}

// history is what the history says of a job.
func (l *lab) history(s spec) ([]entry, error) {
	text, err := l.historyText(s)
	if err != nil {
		return nil, err
	}
	var all []told
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("the history of %s cannot be read: %w", s.name, err)
	}
	var entries []entry
	for _, e := range slices.Backward(all) { // the newest is told first
		switch {
		case e.Run != nil:
			entries = append(entries, entry{job: s.name, id: e.Run.ID, state: e.Run.State, slot: e.Run.Slot, attempt: e.Run.Attempt})
		case e.Missed != nil:
			entries = append(entries, entry{job: s.name, reason: e.Missed.Reason, count: e.Missed.Count, first: e.Missed.First, slot: e.Missed.Last})
		}
	}
	return entries, nil
}

// terms are the leaderships that the nodes' logs tell of, in their order.
func (l *lab) terms() []term {
	var terms []term
	for _, n := range l.cluster.Nodes {
		stopped := map[string]time.Time{}
		of := func(line cluster.Line) string { return fmt.Sprint(line.Text("lock_key"), line.Int("epoch")) }
		for _, line := range n.Lines("stepping down: ending the jobs") {
			stopped[of(line)] = line.Time
		}
		for _, line := range n.Lines("leading") {
			t := term{lock: line.Text("lock_key"), node: n.ID, epoch: line.Int("epoch"), won: line.Time, stopped: stopped[of(line)]}
			if t.lock == lockKey {
				t.lock = ""
			}
			terms = append(terms, t)
		}
	}
	slices.SortFunc(terms, func(a, b term) int { return a.won.Compare(b.won) })
	return terms
}
