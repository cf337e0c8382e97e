package verify

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Kind is the way in which a row differs from the source.
type Kind string

// The kinds of differences.
const (
	Missing   Kind = "missing"   // the record has no row
	Different Kind = "different" // the row has other values
	Extra     Kind = "extra"     // the row has no record
	Unfit     Kind = "unfit"     // the record does not fit the table, and becomes a dead letter
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Missing, Different, Extra, Unfit} }

// Result holds the findings of a comparison so far.
type Result struct {
	Records int64 `json:"records"` // compared
	Rows    int64 `json:"rows"`    // searched for in the source
	// Missing, Different, Extra and Unfit count the differences of each kind.
	Missing   int64 `json:"missing"`
	Different int64 `json:"different"`
	Extra     int64 `json:"extra"`
	Unfit     int64 `json:"unfit"`
	// Moving are records that changed each time they were read: whether their rows follow is unknown.
	Moving   int64     `json:"moving,omitzero"`
	Marked   int64     `json:"marked,omitzero"` // differences that will be flushed again
	Examples []Example `json:"examples,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // parts that were not compared, and why
}

// Differences is the number of all differences.
func (r *Result) Differences() int64 { return r.Missing + r.Different + r.Extra + r.Unfit }

// Count is the number of differences of a kind.
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

// Example is one difference.
type Example struct {
	Kind    Kind     `json:"kind"`
	Key     string   `json:"key"`             // in Redis
	Member  string   `json:"member,omitzero"` // of the set under the key, if each member is a row
	Columns []Column `json:"columns,omitempty"`
	Why     string   `json:"why,omitzero"` // why the record is unfit
}

// Column is a column that differs. Values are cut; "NULL" is NULL.
type Column struct {
	Name  string `json:"name"`
	Redis string `json:"redis"`
	Table string `json:"table"`
}

// note adds a note, once.
func (r *Result) note(text string) {
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// State is the state of a comparison, which can continue there in another process.
type State struct {
	// Place is the place up to which the source was read; see Source.Keys.
	Place string `json:"place,omitzero"`
	// Table: all of the source was read, and rows after Behind are searched for in it.
	Table  bool  `json:"table,omitzero"`
	Behind Texts `json:"behind,omitempty"`
	// Misspelled: rows are not searched for, since a key is spelled in another way in its row.
	Misspelled bool `json:"misspelled,omitzero"`
	// Rounds counts the complete readings of the source that may have missed keys.
	Rounds int `json:"rounds,omitzero"`
	// Marking: a repair has compared everything, and marks the differences. Marks counts the differences that it finds again, and Result
	// stays as it was except Result.Marked.
	Marking bool   `json:"marking,omitzero"`
	Marks   Result `json:"marks,omitzero"`
	// Part is the part of the work that is done, from 0 to 1.
	Part   float64 `json:"part"`
	Result Result  `json:"result"`
}

// mostRounds is the most complete readings of a source.
const mostRounds = 3

// missed makes the work start again if keys may have been missed; false if they were not, or if that happened too often, which it notes.
func (s *State) missed(why error) (again bool) {
	if why == nil {
		return false
	}
	if s.Rounds++; s.Rounds >= mostRounds {
		s.Result.note(fmt.Sprintf("some keys may have been left out, %d times one after the other: %v", s.Rounds, why))
		return false
	}
	s.Place, s.Part = "", 0
	return true
}

// Texts are texts of any bytes, and JSON keeps every byte: as base64.
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
