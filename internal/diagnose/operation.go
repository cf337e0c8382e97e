package diagnose

import "time"

// Operation is a verification or backfill of a job, with its progress or its end.
type Operation struct {
	ID       string    `json:"run_id"`
	Kind     string    `json:"kind"`  // verify or backfill
	State    string    `json:"state"` // running, succeeded, failed (also if anything differs), cancelled
	By       string    `json:"by"`
	Trigger  string    `json:"trigger"`          // manual or schedule
	Sample   float64   `json:"sample,omitempty"` // part of all keys; absent: all of them
	Repair   bool      `json:"repair,omitempty"`
	Started  time.Time `json:"started"`
	Updated  time.Time `json:"updated"`
	Finished time.Time `json:"finished,omitzero"`
	NodeID   string    `json:"node_id"`
	Epoch    int64     `json:"epoch"`
	Error    string    `json:"error,omitzero"` // why it failed, or which rows differ
	Progress Progress  `json:"progress"`
}

// Progress is the progress of an operation, with its findings.
type Progress struct {
	Part   float64  `json:"part"` // of the work, from 0 to 1
	Result Verified `json:"result"`
}

// Verified are the findings of a verification. For a backfill, Records and Marked count the keys.
type Verified struct {
	Records   int64        `json:"records"`          // compared
	Rows      int64        `json:"rows"`             // searched for in Redis
	Missing   int64        `json:"missing"`          // records without a row
	Different int64        `json:"different"`        // rows with other values
	Extra     int64        `json:"extra"`            // rows without a record
	Unfit     int64        `json:"unfit"`            // records that do not fit the table: dead letters
	Moving    int64        `json:"moving,omitempty"` // records that changed too fast to be compared
	Marked    int64        `json:"marked,omitempty"` // to be flushed again
	Examples  []Difference `json:"examples,omitempty"`
	Notes     []string     `json:"notes,omitempty"` // parts that were not compared, and why
}

// Differences is the number of all differences.
func (v Verified) Differences() int64 { return v.Missing + v.Different + v.Extra + v.Unfit }

// Difference is an example of one.
type Difference struct {
	Kind    string            `json:"kind"`             // missing, different, extra or unfit
	Key     string            `json:"key"`              // in Redis
	Member  string            `json:"member,omitempty"` // of the set under the key, if each member is a row
	Columns []DifferentColumn `json:"columns,omitempty"`
	Why     string            `json:"why,omitempty"` // why the record is unfit
}

// DifferentColumn is a column that differs.
type DifferentColumn struct {
	Name  string `json:"name"`
	Redis string `json:"redis"`
	Table string `json:"table"`
}
