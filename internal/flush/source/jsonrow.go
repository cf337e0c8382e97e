package source

import (
	"context"

	"baton/internal/flush/row"
	"baton/internal/flush/source/object"
	"baton/internal/flush/source/paging"
	"baton/internal/redisconn"
)

// items reads what lists hold, a question at a time.
type items struct {
	inputs []string
	object object.Decoder
	pace   redisconn.Pace
	found  int // how many the last question has found
}

func newItems(inputs []string, page int) *items {
	return &items{inputs: inputs, object: object.New(inputs), pace: redisconn.NewPace(paging.Depth, paging.Reply(page))}
}

// read adds a record for each text of the ranges. look, if it is not nil, is asked after them; looked is
// its reply.
func (d *items) read(
	ctx context.Context, c redisconn.Conn, records []row.Record, look *redisconn.Command, ranges ...redisconn.Command,
) (_ []row.Record, looked []any, err error) {
	if look != nil {
		ranges = append(ranges, *look)
	}
	err = askTexts(ctx, c, false, func(a *redisconn.Answers) error {
		n := len(a.Sizes)
		if look != nil {
			looked, n = lastReply(a)
		}
		records = d.decode(records, a, n)
		return nil
	}, ranges...)
	return records, looked, err
}

// decode adds a record for each of the first n texts. All of them share one allocation. The key of
// a record is its whole text: a dead letter then has what no column is made of, too.
func (d *items) decode(records []row.Record, a *redisconn.Answers, n int) []row.Record {
	d.found = n
	raw, all := a.All, a.Take()
	width, at, largest := len(d.inputs), 0, 0
	raws := make([]row.Raw, n*width)
	for i, size := range a.Sizes[:n] {
		size = max(0, size) // of no text
		largest = max(largest, size)
		text := all[at : at+size]
		r := row.Record{Key: text, Inputs: raws[i*width : (i+1)*width : (i+1)*width]}
		r.Err = d.object.Decode(text, raw[at:at+size], r.Inputs)
		for j, input := range d.inputs {
			if input == inputValue {
				r.Inputs[j] = row.Raw{Text: text, OK: true}
			}
		}
		records = append(records, r)
		at += size
	}
	d.pace.Learn(redisconn.Paced{Records: n, Bytes: at, Largest: largest})
	return records
}
