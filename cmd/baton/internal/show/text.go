package show

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Reasons, errors, names of nodes and records come from outside. They could contain codes that move a terminal's cursor, hide a line or
// begin a new line. So all text for people is written by [Say], which removes control codes. Say does not change a text of the type
// [SafeText], which only this package makes.

// SafeText is a text that may be written unchanged, because all its control codes for the terminal were added by baton.
type SafeText string

// Say formats and writes like fmt.Fprintf. It turns each text among the arguments into one line without control codes. Arguments of %q need
// no change, because %q already quotes control codes.
func Say(w io.Writer, format string, args ...any) error {
	for i, a := range args {
		args[i] = harmless(a)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

func harmless(arg any) any {
	switch a := arg.(type) {
	case nil, untrusted:
		return a
	case SafeText:
		return string(a)
	case error:
		return untrusted(a.Error())
	case fmt.Stringer:
		return untrusted(a.String())
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.String:
		return untrusted(v.String())
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		return untrusted(fmt.Sprint(arg))
	default: // numbers
		return arg
	}
}

// untrusted is a text that may contain any characters.
type untrusted string

// Format implements fmt.Formatter.
func (o untrusted) Format(f fmt.State, verb rune) {
	text := string(o)
	if verb != 'q' {
		text = Clean(text)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text) // the writer f keeps the error for Say
}

// Clean returns text as one line without control codes. It writes control codes as Go does: \x1b.
func Clean(text string) string { return cleaned(text, "") }

// LinesOf returns a text of several lines without control codes.
func LinesOf(text string) SafeText { return SafeText(cleaned(text, "\n\t")) }

// cleaned replaces control codes with visible text, and other white space with a blank. The characters in the argument keep stay unchanged.
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

// Plain returns s as one clean line, whose maximum length in characters is the argument most.
func Plain(s string, most int) string {
	runes := []rune(Clean(s))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
