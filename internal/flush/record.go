package flush

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// base64Suffix marks the name of a text that JSON could not carry.
const base64Suffix = "_base64"

// RecordJSON writes a record as a dead letter keeps it: a JSON object of its key
// and its inputs by name, null where the source had none.
//
//	{"key":"7","id":"7","name":"Ann","age":"unknown"}
//
// Nothing is lost in it: a text that is not UTF-8, or has a NUL byte, is written
// in base64 under its name with "_base64" appended, and so is every text whose
// name already ends so. "key" becomes "$key" where an input is called "key".
// A record whose row no longer exists has "$gone": true.
func RecordJSON(inputs []string, r Record) string {
	var b bytes.Buffer
	b.WriteByte('{')
	key := "key"
	for _, name := range inputs {
		if name == "key" {
			key = "$key"
		}
	}
	writeMember(&b, key, Raw{Text: r.Key, OK: true})
	for i, raw := range r.Inputs {
		if i == len(inputs) {
			break
		}
		b.WriteByte(',')
		writeMember(&b, inputs[i], raw)
	}
	if r.Gone {
		b.WriteString(`,"$gone":true`)
	}
	b.WriteByte('}')
	return b.String()
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
