package row

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// These errors mean that a dead letter cannot be replayed. They are matched by errors.Is.
var (
	// ErrCutRecord means that the database could not store the whole record.
	ErrCutRecord = errors.New("flush: the record was shortened in the dead letter")
	// ErrUnreadRecord means that the source itself could not read the record.
	ErrUnreadRecord = errors.New("flush: the source could not read the record")
	// ErrNoInput means that the record lacks an input that the present mapping needs.
	ErrNoInput = errors.New("flush: the record lacks this input")
)

// ParseRecordJSON parses a record that RecordJSON wrote. It returns the exact texts of the record's key and of the given inputs, in the
// order of inputs. The given inputs may differ from the inputs that were written, because the job's mapping may have changed.
// ParseRecordJSON returns ErrNoInput for an input that the record lacks, ErrCutRecord for a shortened record, and ErrUnreadRecord for a
// record that the source could not read.
func ParseRecordJSON(inputs []string, text string) (Record, error) {
	return RepairRecordJSON(inputs, text, nil)
}

// RepairRecordJSON works like ParseRecordJSON, and replaces some inputs with the values in mend. mend may also contain inputs that the
// record lacks.
func RepairRecordJSON(inputs []string, text string, mend map[string]Raw) (Record, error) {
	p, err := parseMembers(text)
	if err != nil {
		return Record{}, fmt.Errorf("the record was not written by baton: %w", err)
	}
	r := Record{Gone: p.gone}
	if r.Key, err = p.key(); err != nil {
		return r, err
	}
	var problems []error
	exact := p.writtenWith(inputs)
	mended := 0
	for i, name := range inputs {
		raw, given := mend[name]
		switch {
		case given:
			mended++
		case exact:
			if raw, err = p.inputs[i].raw(name); errors.Is(err, errOther) {
				err = ErrNoInput
			}
		default:
			raw, err = p.find(name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("input %q: %w", name, err))
			err = nil
		}
		r.Inputs = append(r.Inputs, raw)
	}
	if p.unread && mended < len(inputs) {
		problems = append(problems, ErrUnreadRecord)
	}
	return r, errors.Join(problems...)
}

// members is the parsed JSON object of a record.
type members struct {
	first        member // the key
	inputs       []member
	gone, unread bool
	cut          []string
}

// member is one text of a record with its name in JSON. The text is nil for null.
type member struct {
	name string
	text *string
}

var errNoObject = errors.New("it is not a JSON object")

func parseMembers(text string) (p members, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return p, errNoObject
	}
	var all []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return p, errNoObject
		}
		name, _ := t.(string) // a member of an object begins with a name
		var value any
		if err := d.Decode(&value); err != nil {
			return p, fmt.Errorf("member %q: %w", name, err)
		}
		if err := p.add(&all, name, value); err != nil {
			return p, err
		}
	}
	if _, err := d.Token(); err != nil {
		return p, errNoObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return p, errors.New("something follows the JSON object")
	}
	if len(all) == 0 {
		return p, errors.New("it has no key")
	}
	p.first, p.inputs = all[0], all[1:]
	return p, nil
}

func (p *members) add(all *[]member, name string, value any) error {
	switch value := value.(type) {
	case nil:
		*all = append(*all, member{name: name})
		return nil
	case string:
		*all = append(*all, member{name, &value})
		return nil
	case bool:
		switch {
		case name == memberGone && value:
			p.gone = true
			return nil
		case name == memberUnread && value:
			p.unread = true
			return nil
		}
	case []any:
		if name != memberCut {
			break
		}
		for _, v := range value {
			text, _ := v.(string)
			p.cut = append(p.cut, text)
		}
		return nil
	}
	return fmt.Errorf("member %q is neither a text nor null", name)
}

func (p *members) key() (string, error) {
	for _, name := range []string{"key", "$key"} {
		raw, err := p.first.raw(name)
		switch {
		case err == nil && raw.OK:
			return raw.Text, nil
		case p.isCut(name) && (p.first.name == name+cutSuffix || p.first.name == name+base64Suffix+cutSuffix):
			return "", fmt.Errorf("its key: %w", ErrCutRecord)
		}
	}
	return "", fmt.Errorf("the record was not written by baton: its first member is %q, but should be its key", p.first.name)
}

// writtenWith reports whether the record was written with these inputs. If it was, the inputs are found by the order of the members, and
// not by their names.
func (p *members) writtenWith(inputs []string) bool {
	if len(p.inputs) != len(inputs) || len(p.cut) > 0 {
		return false
	}
	key := keyMember(inputs)
	if p.first.name != key && p.first.name != key+base64Suffix {
		return false
	}
	for i, name := range inputs {
		if n := p.inputs[i].name; n != name && n != name+base64Suffix {
			return false
		}
	}
	return true
}

// find returns the input with that name.
func (p *members) find(name string) (Raw, error) {
	for _, m := range p.inputs {
		if raw, err := m.raw(name); err == nil {
			return raw, nil
		} else if m.name == name+base64Suffix && m.text != nil && !p.isCut(m.name) {
			return raw, err
		}
	}
	if p.isCut(name) {
		return Raw{}, ErrCutRecord
	}
	return Raw{}, ErrNoInput
}

// isCut reports whether the input's member was cut, in plain or base64 form.
func (p *members) isCut(name string) bool {
	return slices.Contains(p.cut, name) || slices.Contains(p.cut, name+base64Suffix)
}

var errOther = errors.New("this is another input")

// raw returns the text of the member if the member is the input with that name, and otherwise errOther. A text whose input name ends in
// base64Suffix is always encoded, so its member has a second suffix. A member without the second suffix can only be null.
func (m member) raw(name string) (Raw, error) {
	switch {
	case m.name == name && m.text == nil:
		return Raw{}, nil
	case m.name == name && !strings.HasSuffix(name, base64Suffix):
		return Raw{Text: *m.text, OK: true}, nil
	case m.name == name+base64Suffix && m.text != nil:
		b, err := base64.StdEncoding.DecodeString(*m.text)
		if err != nil {
			return Raw{}, fmt.Errorf("member %q: %w", m.name, err)
		}
		return Raw{Text: string(b), OK: true}, nil
	}
	return Raw{}, errOther
}
