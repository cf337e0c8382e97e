package row

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Record is one record of a source before the mapping: raw texts in the order of the source's
// inputs.
type Record struct {
	Key    string // the record's name in the source: the hash field, or the row's id
	Inputs []Raw
	Gone   bool  // the record's row no longer exists
	Err    error // why the source could not read the record, which then becomes a dead letter
}

// Size returns the length of the record's texts, in bytes.
func (r *Record) Size() int {
	size := len(r.Key)
	for i := range r.Inputs {
		size += len(r.Inputs[i].Text)
	}
	return size
}

// Raw is one raw text. OK is false if the source has no such field.
type Raw struct {
	Text string
	OK   bool
}

// These are names and suffixes of members of a dead letter.
const (
	base64Suffix = "_base64" // at the end of a name: the text could not be stored in JSON
	memberGone   = "$gone"
	memberUnread = "$unread"
	memberCut    = "$cut" // lists the names of members that were cut; these names end in cutSuffix
	cutSuffix    = "_cut"
)

// RecordJSON formats a record for a dead letter. The JSON object contains the record's key and its inputs by name, except $generation. The
// value is null for an input that the source did not have.
//
//	{"key":"7","id":"7","name":"Ann","age":"unknown"}
//
// The JSON loses no byte of a text. If a text is not UTF-8, or has a NUL byte, it is written in base64, and its name gets the suffix
// "_base64". A text whose name already ends in "_base64" is treated in the same way. The member "key" is called "$key" if an input is
// called "key". A record whose row no longer exists has "$gone": true. A record that the source could not read has "$unread": true.
// ParseRecordJSON is the inverse.
func RecordJSON(inputs []string, r Record) string {
	var b bytes.Buffer
	b.WriteByte('{')
	writeMember(&b, keyMember(inputs), Raw{Text: r.Key, OK: true})
	for i, raw := range r.Inputs {
		if i == len(inputs) {
			break
		}
		if inputs[i] == InputGeneration {
			continue // the generation is a property of the pass, and not of the record
		}
		b.WriteByte(',')
		writeMember(&b, inputs[i], raw)
	}
	if r.Gone {
		b.WriteString(`,"` + memberGone + `":true`)
	}
	if r.Err != nil {
		b.WriteString(`,"` + memberUnread + `":true`)
	}
	b.WriteByte('}')
	return b.String()
}

// keyMember returns the name of the JSON member that contains the record's key. The name depends on whether one of the inputs is called
// "key".
func keyMember(inputs []string) string {
	if slices.Contains(inputs, "key") {
		return "$key"
	}
	return "key"
}

func writeMember(b *bytes.Buffer, name string, raw Raw) {
	text := raw.Text
	if raw.OK && (strings.HasSuffix(name, base64Suffix) || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0) {
		name, text = name+base64Suffix, base64.StdEncoding.EncodeToString([]byte(text))
	}
	writeString(b, name)
	b.WriteByte(':')
	if !raw.OK {
		b.WriteString("null")
		return
	}
	writeString(b, text)
}

func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string into a buffer cannot fail
	b.Truncate(b.Len() - 1)
}
