package operate

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// DeletedRow is a row that a job with the setting "keep_deleted" has deleted, emptied or overwritten.
type DeletedRow struct {
	ID       int64     `json:"id"` // unique within the row's database
	Job      string    `json:"job"`
	Database string    `json:"database"`
	Table    string    `json:"table"`
	Key      string    `json:"key"` // a JSON object
	Why      string    `json:"why"`
	Epoch    int64     `json:"epoch"` // the epoch of the leader that changed the row
	At       time.Time `json:"at"`    // the database's time, like KeepUntil and PutBackAt
	// KeepUntil is when the leader begins to remove the copy.
	KeepUntil time.Time `json:"keep_until"`
	// PutBackAt is when an operator last put the row back. The copy stays until KeepUntil.
	PutBackAt time.Time `json:"put_back_at,omitzero"`
	// Row is a JSON object. It is "" if a list omits it because of its length.
	Row string `json:"row,omitzero"`
}

// MostKept limits how many kept rows are counted, because a job may have kept millions of rows.
const MostKept = 1000

// KeptCount is the number of deleted rows of a job that are kept.
type KeptCount struct {
	Known bool      // the database was asked, and has answered
	Rows  int64     // MostKept means that there may be more rows
	First time.Time // when the first of the counted rows may be removed
}

// RowFilter selects the deleted rows that match every field that is set.
type RowFilter struct {
	ID                  int64 // if it is set, the answer is this whole row, or ErrNoRow
	Job, Database, Text string
}

// DeletedRows returns at most n kept deleted rows, and at most 1000, the newest row first.
func (c *Client) DeletedRows(ctx context.Context, f RowFilter, n int) ([]DeletedRow, error) {
	q := url.Values{}
	for name, value := range map[string]string{"job": f.Job, "database": f.Database, "text": f.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.ID != 0 {
		row, err := get[DeletedRow](ctx, c, q, "deleted-rows", strconv.FormatInt(f.ID, 10))
		if err != nil {
			return nil, err
		}
		return []DeletedRow{row}, nil
	}
	const most = 1000
	q.Set("n", strconv.Itoa(min(n, most)))
	reply, err := get[struct {
		Rows  []DeletedRow
		Error string
	}](ctx, c, q, "deleted-rows")
	return reply.Rows, partly(err, reply.Error)
}
