package show

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Raw writes a program's own output to a terminal. Raw writes line ends, tabs and the codes of colours unchanged, and shows other control
// characters as text.
type Raw struct {
	w    io.Writer
	held string // may be the beginning of a character or of a colour's code
}

// NewRaw returns a Raw that writes to the terminal w.
func NewRaw(w io.Writer) *Raw { return &Raw{w: w} }

// Write writes p to the terminal.
func (r *Raw) Write(p []byte) (int, error) {
	text := r.held + string(p)
	whole := len(text) - begun(text)
	r.held = text[whole:]
	if _, err := io.WriteString(r.w, visible(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// End writes the text that Raw has held back because the text may be incomplete. Then it ends the program's colours.
func (r *Raw) End() error {
	_, err := io.WriteString(r.w, visible(r.held)+"\x1b[0m")
	return err
}

// visible returns a program's output in the form that is written to a terminal: it replaces control characters other than line ends, tabs
// and colours with text.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	last := 0
	for _, at := range regexp.MustCompile("\x1b\\[[0-9;:]*m").FindAllStringIndex(text, -1) {
		b.WriteString(cleaned(text[last:at[0]], "\n\t") + text[at[0]:at[1]])
		last = at[1]
	}
	return b.String() + cleaned(text[last:], "\n\t")
}

// begun returns the number of bytes at the end of text that may be the beginning of a character or code, whose rest is still to come.
func begun(text string) int {
	if at := regexp.MustCompile("(\r|\x1b(\\[[0-9;:]{0,60})?)$").FindStringIndex(text); at != nil {
		return len(text) - at[0]
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
