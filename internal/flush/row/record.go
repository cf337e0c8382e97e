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
	Key    string // its name in the source: the hash field, the row's id
	Inputs []Raw
	Gone   bool  // this row no longer exists
	Err    error // why the source could not read it; goes to the dead letters
}

// Size is the text that the record holds, in bytes.
func (r *Record) Size() int {
	size := len(r.Key)
	for i := range r.Inputs {
		size += len(r.Inputs[i].Text)
	}
	return size
}

// Raw is one raw text; OK is false where the source has no such field.
type Raw struct {
	Text string
	OK   bool
}

// Names and suffixes of members of a dead letter.
const (
	base64Suffix = "_base64" // at a name: a text that JSON could not carry
	memberGone   = "$gone"
	memberUnread = "$unread"
	memberCut    = "$cut" // the names of the members that were cut; theirs end in cutSuffix
	cutSuffix    = "_cut"
)

// RecordJSON writes a record as a dead letter keeps it: a JSON object of its key
// and its inputs by name, null where the source had none.
//
//	{"key":"7","id":"7","name":"Ann","age":"unknown"}
//
// Nothing is lost in it: a text that is not UTF-8, or has a NUL byte, is written
// in base64 under its name with "_base64" appended, and so is every text whose
// name already ends so. "key" becomes "$key" where an input is called "key".
// A record whose row no longer exists has "$gone": true, one that its source could
// not read has "$unread": true. ParseRecordJSON is the inverse.
func RecordJSON(inputs []string, r Record) string {
	var b bytes.Buffer
	b.WriteByte('{')
	writeMember(&b, keyMember(inputs), Raw{Text: r.Key, OK: true})
	for i, raw := range r.Inputs {
		if i == len(inputs) {
			break
		}
		if inputs[i] == InputGeneration {
			continue // it belongs to the pass, not to the record
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

// keyMember is the member name of the record's key, given these inputs.
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
	_ = e.Encode(s) // a string into a buffer: neither can fail
	b.Truncate(b.Len() - 1)
}
