package show

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Texts come from outside: reasons, errors, names of nodes, records. One could hold what
// moves a terminal's cursor, hides a line or begins a new one. So everything that people
// are shown is written by [Say], which lets nothing through but letters, unless it is
// [Shown], which is made here.

// Shown is a text that may be written as it is: what controls the terminal in it is ours.
type Shown string

// Say writes as fmt.Fprintf does. Texts among the arguments become one line that does
// nothing to a terminal; in quotes, by %q, they are so already.
func Say(w io.Writer, format string, args ...any) error {
	for i, a := range args {
		args[i] = harmless(a)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

func harmless(arg any) any {
	switch a := arg.(type) {
	case nil, outside:
		return a
	case Shown:
		return string(a)
	case error:
		return outside(a.Error())
	case fmt.Stringer:
		return outside(a.String())
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.String:
		return outside(v.String())
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		return outside(fmt.Sprint(arg))
	default: // a number
		return arg
	}
}

// outside is a text that may hold anything.
type outside string

// Format makes it fmt.Formatter.
func (o outside) Format(f fmt.State, verb rune) {
	text := string(o)
	if verb != 'q' {
		text = Clean(text)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text) // f keeps an error for say
}

// Clean is one line of text that does nothing to a terminal. What would is shown as Go
// writes it: \x1b.
func Clean(text string) string { return cleaned(text, "") }

// LinesOf is a clean text of several lines.
func LinesOf(text string) Shown { return Shown(cleaned(text, "\n\t")) }

// cleaned leaves the characters in keep as they are. Other white space is a blank.
func cleaned(text, keep string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == unicode.ReplacementChar && text[i] != "\uFFFD"[0]: // no UTF-8
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsGraphic(r), strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n', r == '\t', r == '\r':
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
		}
	}
	return b.String()
}

// Plain is a text cut to most characters, and clean.
func Plain(s string, most int) string {
	runes := []rune(Clean(s))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// FirstLine is a text up to its first line's end.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
