package object

import (
	"slices"
	"strings"
	"unicode/utf8"

	"baton/internal/flush/row"
)

// plainNames is the maximum number of members of an object that plain reads.
const plainNames = 32

// plain reads an object in the form that most producers write: its members are numbers, words, and strings without escapes. The method
// plain returns false for any other object, and if it is not sure about the form. The decoder then reads the object, which takes four times
// as long, and reports errors.
func (d *Decoder) plain(text string, into []row.Raw) bool {
	p := plainText{text: text}
	if d.names = d.names[:0]; !p.take('{') {
		return false
	}
	if p.take('}') {
		return p.end()
	}
	for next := 0; len(d.names) < plainNames; next++ {
		name, ok := p.quoted()
		if !ok || slices.Contains(d.names, name) || !p.take(':') {
			return false
		}
		d.names = append(d.names, name)
		value, ok := p.value()
		if !ok {
			return false
		}
		var found bool
		if next, found = Find(d.wanted, name, next); found {
			into[next] = value
		}
		if !p.take(',') {
			return p.take('}') && p.end()
		}
	}
	return false
}

// plainText is an object, and the position of the next byte to read.
type plainText struct {
	text string
	at   int
}

// next returns the first byte of the next token, or 0 at the end.
func (p *plainText) next() byte {
	for ; p.at < len(p.text); p.at++ {
		if c := p.text[p.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// take consumes a token of one byte, if it is the next token.
func (p *plainText) take(token byte) bool {
	if p.next() != token {
		return false
	}
	p.at++
	return true
}

// end reports whether only blanks follow.
func (p *plainText) end() bool { return p.next() == 0 && p.at == len(p.text) }

// ends are the bytes that end the plain part of a string: the quote, the backslash of an escape, and control characters, which are errors.
var ends = func() (ends [256]bool) {
	for c := range ' ' {
		ends[c] = true
	}
	ends['"'], ends['\\'] = true, true
	return ends
}()

// quoted consumes a string without escapes.
func (p *plainText) quoted() (text string, ok bool) {
	if !p.take('"') {
		return "", false
	}
	begin, i, all := p.at, p.at, byte(0)
	for i < len(p.text) && !ends[p.text[i]] {
		all |= p.text[i]
		i++
	}
	if i == len(p.text) || p.text[i] != '"' {
		return "", false
	}
	p.at = i + 1
	text = p.text[begin:i]
	return text, all < utf8.RuneSelf || utf8.ValidString(text)
}

func (p *plainText) value() (raw row.Raw, ok bool) {
	var rest string
	length := 0
	switch c := p.next(); c {
	case '"':
		raw.Text, raw.OK = p.quoted()
		return raw, raw.OK
	case 't', 'f', 'n':
		rest = p.text[p.at:]
		for _, word := range []string{"true", "false", "null"} {
			if strings.HasPrefix(rest, word) {
				length = len(word)
			}
		}
		raw.OK = c != 'n'
	default:
		rest = p.text[p.at:]
		length, raw.OK = numberLength(rest), true
	}
	if raw.OK {
		raw.Text = rest[:length]
	}
	p.at += length
	return raw, length > 0
}

// numberLength returns the length of the number at the beginning of a text, or 0 if the text does not begin with a number.
func numberLength(t string) int {
	digits := func(i int) int {
		for i < len(t) && '0' <= t[i] && t[i] <= '9' {
			i++
		}
		return i
	}
	begin := 0
	if strings.HasPrefix(t, "-") {
		begin = 1
	}
	end := digits(begin)
	if end == begin || end > begin+1 && t[begin] == '0' {
		return 0
	}
	if end < len(t) && t[end] == '.' {
		begin = end + 1
		if end = digits(begin); end == begin {
			return 0
		}
	}
	if end < len(t) && (t[end] == 'e' || t[end] == 'E') {
		begin = end + 1
		if begin < len(t) && (t[begin] == '+' || t[begin] == '-') {
			begin++
		}
		if end = digits(begin); end == begin {
			return 0
		}
	}
	return end
}
