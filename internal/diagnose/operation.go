package diagnose

import "time"

// Operation describes a verification or a backfill of a job: its progress while it is running, and its result after that.
type Operation struct {
	ID       string    `json:"run_id"`
	Kind     string    `json:"kind"`  // verify or backfill
	State    string    `json:"state"` // running, succeeded, failed (also if there are differences), cancelled
	By       string    `json:"by"`
	Trigger  string    `json:"trigger"`          // manual or schedule
	Sample   float64   `json:"sample,omitempty"` // the share of all keys; absent if all keys are verified
	Repair   bool      `json:"repair,omitempty"`
	Started  time.Time `json:"started"`
	Updated  time.Time `json:"updated"`
	Finished time.Time `json:"finished,omitzero"`
	NodeID   string    `json:"node_id"`
	Epoch    int64     `json:"epoch"`
	Error    string    `json:"error,omitzero"` // why the operation failed, or which rows differ
	Progress Progress  `json:"progress"`
}

// Progress says how far an operation has come, and contains its results so far.
type Progress struct {
	Part   float64  `json:"part"` // the finished part of the work, from 0 to 1
	Result Verified `json:"result"`
}

// Verified contains the numbers that a verification has counted. For a backfill, the fields Records and Marked count the keys.
type Verified struct {
	Records   int64        `json:"records"`          // records that were compared
	Rows      int64        `json:"rows"`             // rows that were looked up in Redis
	Missing   int64        `json:"missing"`          // records without a row
	Different int64        `json:"different"`        // rows with other values
	Extra     int64        `json:"extra"`            // rows without a record
	Unfit     int64        `json:"unfit"`            // records that do not fit the table, which would become dead letters
	Moving    int64        `json:"moving,omitempty"` // records that changed too fast to be compared
	Marked    int64        `json:"marked,omitempty"` // records that were marked to be flushed again
	Examples  []Difference `json:"examples,omitempty"`
	Notes     []string     `json:"notes,omitempty"` // the parts that were not compared, and the reasons
}

// Differences returns the number of all differences that the verification has found.
func (v Verified) Differences() int64 { return v.Missing + v.Different + v.Extra + v.Unfit }

// Difference describes one difference between a record and its row, as an example.
type Difference struct {
	Kind    string            `json:"kind"`             // missing, different, extra or unfit
	Key     string            `json:"key"`              // the key in Redis
	Member  string            `json:"member,omitempty"` // the member of the set under the key, if each member is a row
	Columns []DifferentColumn `json:"columns,omitempty"`
	Why     string            `json:"why,omitempty"` // why the record is unfit
}

// DifferentColumn describes a column whose value differs between the record and its row.
type DifferentColumn struct {
	Name  string `json:"name"`
	Redis string `json:"redis"`
	Table string `json:"table"`
}
