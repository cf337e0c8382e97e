package source

import (
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
)

// scanTypes maps each value of the setting "value" to the Redis type of the keys.
var scanTypes = map[string]string{"hash": "hash", "string": "string", "json": "string", "set": "set", "zset": "zset"}

// ScanInputs returns the inputs that a scan of these keys can deliver: the captures of the pattern, $key and $generation. The other inputs
// depend on the value:
//
//	hash    the fields
//	string  $value
//	json    the members of the object, $value
//	set     $member: one row for each member
//	zset    $member, $score: one row for each member
//
// If a field has the name of a capture, the capture wins. If value is "", the value is a hash.
func ScanInputs(key, value string) (row.Inputs, error) {
	pattern, err := spec.ParseKeyPattern(key)
	if err != nil {
		return row.Inputs{}, err
	}
	in := row.Inputs{Names: append(slices.Clone(pattern.Names), row.InputKey, row.InputGeneration), Guarantee: row.ByPass}
	switch value {
	case "hash":
		in.Fields = true
	case "string":
		in.Names = append(in.Names, row.InputValue)
	case "json":
		in.Names = append(in.Names, row.InputValue)
		in.Fields = true
	case "set":
		in.Names = append(in.Names, row.InputMember)
	case "zset":
		in.Names = append(in.Names, row.InputMember, row.InputScore)
	default:
		return in, fmt.Errorf("a scan cannot read values of type %q: use hash, string, json, set or zset", value)
	}
	return in, nil
}

// slot says where the value of an input comes from.
type slot struct {
	from  slotKind
	index int // the index of the capture or field
}

type slotKind uint8

const (
	slotCapture slotKind = iota
	slotField
	slotKey
	slotGeneration
	slotValue // also the member of a set
	slotScore
)

// setInputs finds out where the values of the inputs come from.
func (s *Scan) setInputs(inputs []string) error {
	available, err := ScanInputs(s.pattern.String(), s.value)
	if err != nil {
		return err
	}
	for _, input := range inputs {
		capture := slices.Index(s.pattern.Names, input)
		switch {
		case capture >= 0:
			s.slots = append(s.slots, slot{slotCapture, capture})
		case strings.HasPrefix(input, "$") && !slices.Contains(available.Names, input), !strings.HasPrefix(input, "$") && !available.Fields:
			return fmt.Errorf("a scan of %s has no input %q: it has %s", s.value, input, strings.Join(available.Names, ", "))
		case input == row.InputKey:
			s.slots = append(s.slots, slot{from: slotKey})
		case input == row.InputGeneration:
			s.slots = append(s.slots, slot{from: slotGeneration})
		case input == row.InputValue, input == row.InputMember:
			s.slots = append(s.slots, slot{from: slotValue})
			s.whole = true
		case input == row.InputScore:
			s.slots = append(s.slots, slot{from: slotScore})
			s.whole = true
		default:
			s.slots = append(s.slots, slot{slotField, len(s.fields)})
			s.fields = append(s.fields, input)
		}
	}
	return nil
}

// record converts a key that was read into a record. It fills raws, which become the inputs of the record.
func (s *Scan) record(from *scanned, generation row.Raw, raws []row.Raw) row.Record {
	for i, slot := range s.slots {
		switch slot.from {
		case slotCapture:
			raws[i] = row.Raw{Text: from.captures[slot.index], OK: true}
		case slotField:
			if from.fields != nil {
				raws[i] = from.fields[slot.index]
			}
		case slotKey:
			raws[i] = row.Raw{Text: from.key, OK: true}
		case slotGeneration:
			raws[i] = generation
		case slotValue:
			raws[i] = from.value
		case slotScore:
			raws[i] = from.score
		}
	}
	return row.Record{Key: from.key, Inputs: raws}
}

// Named returns the record of a key with only those inputs that follow from the key's name.
func (s *Scan) Named(key string) row.Record {
	r := row.Record{Key: key, Inputs: make([]row.Raw, len(s.slots))}
	captures, _ := s.pattern.Match(key, nil)
	for i, slot := range s.slots {
		switch {
		case slot.from == slotCapture && slot.index < len(captures):
			r.Inputs[i] = row.Raw{Text: captures[slot.index], OK: true}
		case slot.from == slotKey:
			r.Inputs[i] = row.Raw{Text: key, OK: true}
		}
	}
	return r
}

// keyOf returns the key of an id, and the key's captures. The id is a slice with one element. If the pattern has one capture, this element
// is the capture. Otherwise the element is the key.
func (s *Scan) keyOf(id []string) (key string, captures []string) {
	if len(s.pattern.Names) == 1 {
		return s.pattern.Key(id), id
	}
	captures, _ = s.pattern.Match(id[0], make([]string, 0, len(s.pattern.Names)))
	return id[0], captures
}
