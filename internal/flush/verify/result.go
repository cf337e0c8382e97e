package verify

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Kind is a kind of difference between a row and the source.
type Kind string

// These are the kinds of differences.
const (
	Missing   Kind = "missing"   // the record has no row
	Different Kind = "different" // the row has other values
	Extra     Kind = "extra"     // the row has no record
	Unfit     Kind = "unfit"     // the record does not fit the table, and becomes a dead letter
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Missing, Different, Extra, Unfit} }

// Result contains the differences that a comparison has found up to now.
type Result struct {
	Records int64 `json:"records"` // the number of compared records
	Rows    int64 `json:"rows"`    // the number of rows whose records were searched for
	// Missing, Different, Extra and Unfit count the differences of each kind.
	Missing   int64 `json:"missing"`
	Different int64 `json:"different"`
	Extra     int64 `json:"extra"`
	Unfit     int64 `json:"unfit"`
	// Moving counts records that changed each time they were read, so that it is unknown whether their rows are up to date.
	Moving   int64     `json:"moving,omitzero"`
	Marked   int64     `json:"marked,omitzero"` // differences that were marked for the flush
	Examples []Example `json:"examples,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // which parts were not compared, and why
}

// Differences returns the number of all differences.
func (r *Result) Differences() int64 { return r.Missing + r.Different + r.Extra + r.Unfit }

// Count returns the number of differences of a kind.
func (r *Result) Count(k Kind) int64 { return *r.counter(k) }

func (r *Result) counter(k Kind) *int64 {
	switch k {
	case Missing:
		return &r.Missing
	case Different:
		return &r.Different
	case Extra:
		return &r.Extra
	default:
		return &r.Unfit
	}
}

// Shortened returns the result with at most that many examples of each kind.
func (r *Result) Shortened(most int) Result {
	short, shown := *r, map[Kind]int{}
	short.Examples = slices.DeleteFunc(slices.Clone(r.Examples), func(e Example) bool {
		shown[e.Kind]++
		return shown[e.Kind] > most
	})
	return short
}

// LacksExamples reports whether the result has fewer examples of a kind than are wanted and were found.
func (r *Result) LacksExamples(wanted int) bool {
	shown := map[Kind]int64{}
	for _, e := range r.Examples {
		shown[e.Kind]++
	}
	return slices.ContainsFunc(Kinds(), func(k Kind) bool { return shown[k] < min(r.Count(k), int64(wanted)) })
}

// Example describes one difference, to be shown to an operator.
type Example struct {
	Kind    Kind     `json:"kind"`
	Key     string   `json:"key"`             // in Redis
	Member  string   `json:"member,omitzero"` // the member of the set under the key, if each member is a row
	Columns []Column `json:"columns,omitempty"`
	Why     string   `json:"why,omitzero"` // why the record is unfit
}

// Column is a column that differs. Long values are shortened. The text "NULL" stands for NULL.
type Column struct {
	Name  string `json:"name"`
	Redis string `json:"redis"`
	Table string `json:"table"`
}

// note adds a note, unless the result contains that note already.
func (r *Result) note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// State contains the progress of a comparison, from which another process can continue.
type State struct {
	// Place is the place in the source up to which keys were read: see Source.Keys.
	Place string `json:"place,omitzero"`
	// Table means that the whole source was read. The comparison now searches for the records of the rows after the key Behind.
	Table  bool  `json:"table,omitzero"`
	Behind Texts `json:"behind,omitempty"`
	// Misspelled means that some rows spell their keys differently from their records. So the comparison does not search for the records of
	// rows.
	Misspelled bool `json:"misspelled,omitzero"`
	// Rounds counts the complete readings of the source that may have missed keys.
	Rounds int `json:"rounds,omitzero"`
	// Restarts counts the readings of the source that a restart or a failover of a server has interrupted.
	Restarts int `json:"restarts,omitzero"`
	// Marking means that a repair has compared everything, and now marks the differences. Marks counts the differences that the repair
	// finds again. Only Result.Marked still changes in Result.
	Marking bool   `json:"marking,omitzero"`
	Marks   Result `json:"marks,omitzero"`
	// Part is the finished share of the work, from 0 to 1.
	Part   float64 `json:"part"`
	Result Result  `json:"result"`
}

// mostRounds limits how often the complete source is read.
const mostRounds = 3

// missed makes the work start again, and returns true, if keys may have been missed. It returns false if no keys were missed, or if keys
// were missed too often. In the latter case it adds a note.
func (s *State) missed(why error) (again bool) {
	if why == nil {
		return false
	}
	if s.Rounds++; s.Rounds >= mostRounds {
		s.Result.note(fmt.Sprintf("some keys may not have been compared: each of %d readings may have missed keys: %v", s.Rounds, why))
		return false
	}
	s.Place, s.Part = "", 0
	return true
}

// repeated makes the work start again, and returns true, if keys may be returned again that were counted already. It returns false if no
// such keys are returned, or if this happened too often. In the latter case it adds a note.
func (s *State) repeated(again bool) bool {
	if !again {
		return false
	}
	if s.Restarts++; s.Restarts >= mostRounds {
		s.Result.note("some keys may have been counted twice, because a Redis server has restarted or failed over several times")
		return false
	}
	s.Place, s.Part = "", 0
	return true
}

// Texts are texts of any bytes. Their JSON form is base64, which keeps every byte.
type Texts []string

// MarshalJSON implements json.Marshaler.
func (t Texts) MarshalJSON() ([]byte, error) {
	all := make([][]byte, len(t))
	for i, text := range t {
		all[i] = []byte(text)
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Texts) UnmarshalJSON(text []byte) error {
	var all [][]byte
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*t = nil
	for _, one := range all {
		*t = append(*t, string(one))
	}
	return nil
}
