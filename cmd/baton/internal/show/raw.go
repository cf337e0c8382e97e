package show

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Raw is a terminal that a program's own output goes to: its lines, tabs and colours have
// their effect, and other control characters are shown.
type Raw struct {
	w    io.Writer
	held string // may be the beginning of a character or a colour
}

// NewRaw makes a Raw that shows its input on the terminal w.
func NewRaw(w io.Writer) *Raw { return &Raw{w: w} }

// Write shows p.
func (r *Raw) Write(p []byte) (int, error) {
	text := r.held + string(p)
	whole := len(text) - begun(text)
	r.held = text[whole:]
	if _, err := io.WriteString(r.w, visible(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// End shows the rest that was held back, and ends the program's colours.
func (r *Raw) End() error {
	_, err := io.WriteString(r.w, visible(r.held)+"\x1b[0m")
	return err
}

// visible is the part of a program's output that is written to a terminal.
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

// begun is how many bytes at the end of a text may go on in the next one.
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
