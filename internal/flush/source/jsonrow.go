package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// Why a text is no row.
var (
	errNoObject   = errors.New("it is JSON, but not an object")
	errEmptyText  = errors.New("it is empty")
	errMoreValues = errors.New("something follows the object")
)

// objectDecoder reads the wanted members of JSON objects, one object after the other.
//
// It is strict, because what a text may mean in more than one way would be changed
// silently by taking one of them: a name that is there twice, at any depth, bytes that
// are not UTF-8 and escaped halves of a surrogate pair are errors, like everything
// that RFC 8259 has no grammar for.
type objectDecoder struct {
	wanted []string
	text   *bytes.Buffer
	json   *jsontext.Decoder
}

func newObjectDecoder(wanted []string) objectDecoder {
	text := &bytes.Buffer{}
	return objectDecoder{wanted: wanted, text: text, json: jsontext.NewDecoder(text)}
}

// decodeObject reads one object. Use an objectDecoder where there are many.
func decodeObject(text []byte, wanted []string, into []row.Raw) error {
	d := newObjectDecoder(wanted)
	return d.decode(string(text), text, into)
}

// decode reads the object that text is, and raw too, into the wanted members:
//
//	a string              what it says, without its escapes
//	a number              the digits as they are written
//	true, false           these words
//	null, or no member    not OK
//	an object, an array   their JSON text as it is written
//
// Where nothing has to be unescaped they are parts of text, and cost no memory. After
// an error none is OK.
func (d *objectDecoder) decode(text string, raw []byte, into []row.Raw) error {
	clear(into)
	*d.text = *bytes.NewBuffer(raw) // which the decoder reads in its place
	d.json.Reset(d.text)
	err := d.members(text, into)
	if err == nil {
		return nil
	}
	clear(into)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it ends too early: %w", err)
	}
	return fmt.Errorf("not a row: %w", err)
}

func (d *objectDecoder) members(text string, into []row.Raw) error {
	switch open, err := d.json.ReadToken(); {
	case errors.Is(err, io.EOF):
		return errEmptyText
	case err != nil:
		return err
	case open.Kind() != '{':
		return errNoObject
	}
	for next := 0; d.json.PeekKind() != '}'; next++ {
		name, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		var found bool
		if next, found, err = d.find(name, next); err != nil {
			return err
		}
		if !found {
			if err := d.json.SkipValue(); err != nil {
				return err
			}
			continue
		}
		value, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		if into[next], err = d.raw(text, value); err != nil {
			return err
		}
	}
	if _, err := d.json.ReadToken(); err != nil { // its end
		return err
	}
	switch _, err := d.json.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errMoreValues
}

// find looks a quoted name up among the wanted ones. Objects of one producer have
// their members in one order: it begins where that of the last one would be.
func (d *objectDecoder) find(name []byte, from int) (at int, found bool, err error) {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		if plain, err = jsontext.AppendUnquote(nil, name); err != nil {
			return 0, false, err
		}
	}
	at, found = indexOf(d.wanted, plain, from)
	return at, found, nil
}

// indexOf looks a name up, beginning at from. Where it is not found, at is the place
// before from: the search for the next name begins at from again.
func indexOf[T string | []byte](names []string, name T, from int) (at int, found bool) {
	n := len(names)
	for i := range n {
		at := from + i
		if at >= n {
			at -= n
		}
		if at < n && names[at] == string(name) {
			return at, true
		}
	}
	return from - 1, false
}

// raw is the text of a value that was read last.
func (d *objectDecoder) raw(text string, value jsontext.Value) (row.Raw, error) {
	end := int(d.json.InputOffset())
	switch value.Kind() {
	case 'n':
		return row.Raw{}, nil
	case '"':
		if bytes.IndexByte(value, '\\') < 0 {
			return row.Raw{Text: text[end-len(value)+1 : end-1], OK: true}, nil
		}
		plain, err := jsontext.AppendUnquote(nil, value)
		return row.Raw{Text: string(plain), OK: true}, err
	}
	return row.Raw{Text: text[end-len(value) : end], OK: true}, nil
}

// items reads what lists hold, a question at a time.
type items struct {
	inputs []string
	object objectDecoder
	pace   pace
	found  int // how many the last question has found
}

func newItems(inputs []string, budget int) *items {
	return &items{inputs: inputs, object: newObjectDecoder(inputs), pace: newPace(budget)}
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
	width, at := len(d.inputs), 0
	raws := make([]row.Raw, n*width)
	for i, size := range a.Sizes[:n] {
		size = max(0, size) // of no text
		text := all[at : at+size]
		r := row.Record{Key: text, Inputs: raws[i*width : (i+1)*width : (i+1)*width]}
		r.Err = d.object.decode(text, raw[at:at+size], r.Inputs)
		for j, input := range d.inputs {
			if input == inputValue {
				r.Inputs[j] = row.Raw{Text: text, OK: true}
			}
		}
		records = append(records, r)
		at += size
	}
	d.pace.learn(n, at)
	return records
}
