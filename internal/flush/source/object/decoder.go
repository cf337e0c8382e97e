// Package object reads JSON objects as rows: exactly as they are written, or not at all.
//
//	Decoder  reads the wanted members of objects: it first tries plain, and then uses a strict parser
//	plain    reads an object in the form that most producers write, which is faster
//
// What fails, and what then:
//
//   - A text is empty, is no object, is ambiguous or is no valid JSON: Decode returns an error, and the record becomes a dead letter.
//   - A member is missing or null: its input is not OK, and the mapping decides which value is written.
package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"baton/internal/flush/row"
)

// These are the reasons why a text does not become a row.
var (
	errNoObject   = errors.New("it is JSON, but not an object")
	errEmptyText  = errors.New("it is empty")
	errMoreValues = errors.New("something follows the object")
)

// Decoder reads the wanted members of JSON objects, one object after the other.
//
// It is strict, because choosing one meaning of an ambiguous text would silently change the value. A name that occurs twice in an object at
// any depth is an error. Bytes that are not UTF-8, an escape that is only half of a surrogate pair, and everything outside of the grammar
// of RFC 8259 are also errors.
type Decoder struct {
	wanted []string
	text   *bytes.Buffer
	json   *jsontext.Decoder
	names  []string // the names that plain has read in the present object
}

// New returns a Decoder for the members with these names.
func New(wanted []string) Decoder {
	text := &bytes.Buffer{}
	return Decoder{wanted: wanted, text: text, json: jsontext.NewDecoder(text)}
}

// Decode reads the object in text into the wanted members. raw must have the same bytes as text.
//
//	a string              its meaning, without the escapes
//	a number              the digits as they are written
//	true, false           these words
//	null, or no member    not OK
//	an object, an array   their JSON text as it is written
//
// Values are parts of text, and need no memory of their own, unless escapes are replaced. After an error no member is OK.
func (d *Decoder) Decode(text string, raw []byte, into []row.Raw) error {
	clear(into)
	if d.plain(text, into) {
		return nil
	}
	clear(into)
	*d.text = *bytes.NewBuffer(raw) // the decoder reads raw in place
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

func (d *Decoder) members(text string, into []row.Raw) error {
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
	if _, err := d.json.ReadToken(); err != nil { // reads the end of the object
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

// find returns the index of a quoted name among the wanted names. It begins at the index in the argument from, which belongs to the name
// after the last one that was found. Objects of one producer usually have their members in the same order.
func (d *Decoder) find(name []byte, from int) (at int, found bool, err error) {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		if plain, err = jsontext.AppendUnquote(nil, name); err != nil {
			return 0, false, err
		}
	}
	at, found = Find(d.wanted, plain, from)
	return at, found, nil
}

// Find searches for a name, beginning at the index in the argument from. If it does not find the name, the result at is from-1. The search
// for the next name begins at the index after at, and so at the same index again.
func Find[T string | []byte](names []string, name T, from int) (at int, found bool) {
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

// raw returns the value that was read last.
func (d *Decoder) raw(text string, value jsontext.Value) (row.Raw, error) {
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
