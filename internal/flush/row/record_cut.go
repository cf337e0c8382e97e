package row

import (
	"bytes"
	"strings"
)

// CutRecordJSON shortens each text that is longer than limit bytes, for a database that cannot store such texts. It appends "_cut" to the
// names of these texts, and lists the names in "$cut". ParseRecordJSON returns ErrCutRecord for these texts. A record without such texts
// stays unchanged.
func CutRecordJSON(record string, limit int) string {
	if len(record) <= limit {
		return record
	}
	p, err := parseMembers(record)
	if err != nil {
		return record
	}
	var b bytes.Buffer
	cut := p.cut
	for i, m := range append([]member{p.first}, p.inputs...) {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		if m.text == nil || len(*m.text) <= limit {
			writeRaw(&b, m)
			continue
		}
		cut = append(cut, m.name)
		short := strings.ToValidUTF8((*m.text)[:limit], "")
		writeRaw(&b, member{m.name + cutSuffix, &short})
	}
	if len(cut) == len(p.cut) {
		return record
	}
	if p.gone {
		b.WriteString(`,"` + memberGone + `":true`)
	}
	if p.unread {
		b.WriteString(`,"` + memberUnread + `":true`)
	}
	b.WriteString(`,"` + memberCut + `":[`)
	for i, name := range cut {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(&b, name)
	}
	b.WriteString("]}")
	return b.String()
}

func writeRaw(b *bytes.Buffer, m member) {
	writeString(b, m.name)
	b.WriteByte(':')
	if m.text == nil {
		b.WriteString("null")
		return
	}
	writeString(b, *m.text)
}
