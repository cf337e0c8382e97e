// Package object reads JSON objects as rows: exactly as they are written, or not at all.
package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"baton/internal/flush/row"
)

// Why a text is no row.
var (
	errNoObject   = errors.New("it is JSON, but not an object")
	errEmptyText  = errors.New("it is empty")
	errMoreValues = errors.New("something follows the object")
)

// Decoder reads the wanted members of JSON objects, one object after the other.
//
// It is strict: to choose one meaning of an ambiguous text would change the value silently. So a name that occurs twice, at any depth,
// bytes that are not UTF-8 and escaped halves of a surrogate pair are errors, like everything outside the grammar of RFC 8259.
type Decoder struct {
	wanted []string
	text   *bytes.Buffer
	json   *jsontext.Decoder
	names  []string // of the members so far
}

// New makes a Decoder of the members with these names.
func New(wanted []string) Decoder {
	text := &bytes.Buffer{}
	return Decoder{wanted: wanted, text: text, json: jsontext.NewDecoder(text)}
}

// Decode reads the object in text, and also in raw, into the wanted members:
//
//	a string              its meaning, without the escapes
//	a number              the digits as they are written
//	true, false           these words
//	null, or no member    not OK
//	an object, an array   their JSON text as it is written
//
// Unless escapes are replaced, they are parts of text, and cost no memory. After an error no member is OK.
func (d *Decoder) Decode(text string, raw []byte, into []row.Raw) error {
	clear(into)
	if d.plain(text, into) {
		return nil
	}
	clear(into)
	*d.text = *bytes.NewBuffer(raw) // the decoder reads it in place
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
	if _, err := d.json.ReadToken(); err != nil { // the end of the object
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

// find finds a quoted name among the wanted ones. Objects of one producer have their members in one order: it begins at the member after
// the last one.
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

// Find searches for a name, beginning at from. If it is not found, at is the place before from:
// the search for the next name begins at from again.
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

// raw is the text of the value that was read last.
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
