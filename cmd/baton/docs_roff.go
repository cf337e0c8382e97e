package main

import (
	"fmt"
	"regexp"
	"strings"
)

// roff writes a manual page, by the macros of man(7).
type roff struct{ strings.Builder }

// roffText keeps what has a meaning to roff from having it. Hyphens are minus signs
// everywhere, so that what is copied from the page can be typed.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\(rs`, `-`, `\-`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`, `'`, `\(aq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// title begins the page.
func (r *roff) title(name, section, date, source string) {
	fmt.Fprintf(r, ".TH \"%s\" \"%s\" \"%s\" \"%s\" \"baton manual\"\n", roffText(strings.ToUpper(name)), section, date, roffText(source))
	r.WriteString(".nh\n.ad l\n") // names and flags are not to be broken
}

func (r *roff) section(name string) { fmt.Fprintf(r, ".SH %s\n", name) }

// code is what stands in backquotes.
var code = regexp.MustCompile("`[^`]+`")

// prose is roffText with what is in backquotes in bold.
func prose(line string) string {
	var b strings.Builder
	for {
		at := code.FindStringIndex(line)
		if at == nil {
			b.WriteString(roffText(line))
			return b.String()
		}
		b.WriteString(roffText(line[:at[0]]) + bold(line[at[0]+1:at[1]-1]))
		line = line[at[1]:]
	}
}

func bold(text string) string   { return `\fB` + roffText(text) + `\fR` }
func italic(text string) string { return `\fI` + roffText(text) + `\fR` }

// text writes a help text.
func (r *roff) text(text string) {
	for i, b := range blocks(text) {
		if i > 0 {
			r.WriteString(".PP\n")
		}
		if b.as {
			r.literal(b.lines)
			continue
		}
		for _, line := range b.lines {
			fmt.Fprintln(r, prose(line))
		}
	}
}

// literal writes lines as they are.
func (r *roff) literal(lines []string) {
	r.WriteString(".RS 4\n.nf\n")
	for _, line := range lines {
		fmt.Fprintln(r, roffText(line))
	}
	r.WriteString(".fi\n.RE\n")
}

// item writes a term and what it means. The term is roff already.
func (r *roff) item(term, means string) {
	fmt.Fprintf(r, ".TP\n%s\n%s\n", term, prose(means))
}
