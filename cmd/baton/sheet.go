package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// sheet is a writer for people: it knows whether it takes colours, and how wide it is.
type sheet struct {
	io.Writer
	colour bool
	width  int // 0: as wide as it takes
}

// newSheet is w for people.
func newSheet(cmd *cobra.Command, e env, w io.Writer) *sheet {
	if s, ok := w.(*sheet); ok {
		return s
	}
	s := &sheet{Writer: w, colour: takesColour(cmd, e, w)}
	if size, ok := terminalSize(w); ok {
		s.width, _ = size()
	}
	return s
}

// The values of --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

// colourFlag is the flag --color.
type colourFlag string

// String, Set and Type make it a flag.
func (c *colourFlag) String() string { return string(*c) }

// Set takes auto, always or never.
func (c *colourFlag) Set(s string) error {
	switch s {
	case colourAuto, colourAlways, colourNever:
		*c = colourFlag(s)
		return nil
	}
	return fmt.Errorf("want %s, %s or %s", colourAuto, colourAlways, colourNever)
}

// Type is what the help text calls the value.
func (c *colourFlag) Type() string { return "when" }

func addColourFlag(root *cobra.Command) {
	when := colourFlag(colourAuto)
	root.PersistentFlags().Var(&when, "color", "colours: auto, always or never; auto is on a terminal, unless $NO_COLOR is set")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{colourAuto, colourAlways, colourNever}, cobra.ShellCompDirectiveNoFileComp))
}

// takesColour: see no-color.org. What was said on the command line goes first.
func takesColour(cmd *cobra.Command, e env, w io.Writer) bool {
	if f := cmd.Flag("color"); f != nil && f.Value.String() != colourAuto {
		return f.Value.String() == colourAlways
	}
	noColour, _ := e.getenv("NO_COLOR")
	term, _ := e.getenv("TERM")
	_, terminal := terminalSize(w)
	return terminal && noColour == "" && term != "dumb" && term != ""
}

// A colour says how something stands. Without colours the words say the same.
type colour string

// The colours. They are of the sixteen that a terminal's owner has chosen.
const (
	good   colour = "32" // leads, has succeeded
	bad    colour = "31" // fails, is gone
	uneasy colour = "33" // late, paused, about to be bad
	dim    colour = "2"  // need not be read
	strong colour = "1"  // to be read first
)

// paint is text in a colour, where w takes colours.
func paint(w io.Writer, c colour, text string) shown {
	text = clean(text)
	s, ok := w.(interface{ colours() bool })
	if !ok || !s.colours() || text == "" || c == "" {
		return shown(text)
	}
	return shown("\x1b[" + string(c) + "m" + text + "\x1b[0m")
}

func (s *sheet) colours() bool { return s.colour }

// fits cuts lines of free text to the sheet's width.
func (s *sheet) fits(line string) string {
	if s.width == 0 {
		return line
	}
	return cutWidth(line, s.width)
}

// isTerminal is whether somebody sits there: nobody does at /dev/null.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, ok = terminalSize(f)
	return ok
}
