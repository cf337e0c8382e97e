package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wide contains the characters that take two columns of a terminal: East Asian characters and pictographs.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1},
		{Lo: 0x23e9, Hi: 0x23ec, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// TextWidth returns the number of terminal columns that a text takes. Codes for colours take no columns.
func TextWidth(text string) int {
	n := 0
	eachRune(text, func(_ int, r rune) bool { n += runeWidth(r); return true })
	return n
}

// eachRune calls f with each character of a text and its byte position, until f returns false. It skips the codes for colours.
func eachRune(text string, f func(at int, r rune) bool) {
	escape := false
	for i, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case !f(i, r):
			return
		}
	}
}

// CutWidth shortens a text to at most the number of columns in the argument most. An ellipsis shows that the text was cut.
func CutWidth(text string, most int) string {
	if most < 1 || TextWidth(text) <= most {
		return text
	}
	n, end := 0, 0
	eachRune(text, func(at int, r rune) bool {
		if n+runeWidth(r) > most-1 {
			end = at
			return false
		}
		n += runeWidth(r)
		return true
	})
	text = text[:end] + "…"
	if strings.Contains(text, "\x1b[") {
		text += "\x1b[0m"
	}
	return text
}

// Wrap breaks a text into lines at blanks. A word that is longer than a line gets its own line.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(Clean(text)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
