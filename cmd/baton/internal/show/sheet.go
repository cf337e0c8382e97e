package show

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Sheet is a writer for people: it knows whether it takes colours, and how wide it is.
type Sheet struct {
	io.Writer
	Colour bool
	Width  int // 0: as wide as it takes
	// Live: it is a screen that is drawn again and again: a row is cut at the width, else it goes on
	// in further lines.
	Live bool
}

// lookup finds a variable of the environment.
type lookup = func(name string) (value string, ok bool)

// NewSheet is w for people.
func NewSheet(cmd *cobra.Command, getenv lookup, w io.Writer) *Sheet {
	if s, ok := w.(*Sheet); ok {
		return s
	}
	s := &Sheet{Writer: w, Colour: takesColour(cmd, getenv, w)}
	if size, ok := TerminalSize(w); ok {
		s.Width, _ = size()
	}
	return s
}

// SheetOf is w for people, with colours or without, and width columns wide; 0 means no limit.
func SheetOf(w io.Writer, colour bool, width int) *Sheet {
	return &Sheet{Writer: w, Colour: colour, Width: width}
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

// Type is the name of the value in the help text.
func (c *colourFlag) Type() string { return "when" }

// AddColourFlag gives root the flag --color.
func AddColourFlag(root *cobra.Command) {
	when := colourFlag(colourAuto)
	root.PersistentFlags().Var(&when, "color", "colours: auto, always or never; auto is on a terminal, unless $NO_COLOR is set")
	_ = root.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{colourAuto, colourAlways, colourNever}, cobra.ShellCompDirectiveNoFileComp))
}

// takesColour: see no-color.org. The flag of the command line goes first.
func takesColour(cmd *cobra.Command, getenv lookup, w io.Writer) bool {
	if f := cmd.Flag("color"); f != nil && f.Value.String() != colourAuto {
		return f.Value.String() == colourAlways
	}
	noColour, _ := getenv("NO_COLOR")
	term, _ := getenv("TERM")
	_, terminal := TerminalSize(w)
	return terminal && noColour == "" && term != "dumb" && term != ""
}

// Colour says how something stands. Without colours the words say the same.
type Colour string

// The colours. They are of the sixteen that a terminal's owner has chosen.
const (
	Good   Colour = "32" // leads, has succeeded
	Bad    Colour = "31" // fails, is gone
	Uneasy Colour = "33" // late, paused, about to be bad
	Dim    Colour = "2"  // need not be read
	Strong Colour = "1"  // to be read first
)

// Paint is text in a colour, where w takes colours.
func Paint(w io.Writer, c Colour, text string) Shown {
	text = Clean(text)
	s, ok := w.(interface{ colours() bool })
	if !ok || !s.colours() || text == "" || c == "" {
		return Shown(text)
	}
	return Shown("\x1b[" + string(c) + "m" + text + "\x1b[0m")
}

func (s *Sheet) colours() bool { return s.Colour }

// fits cuts lines of free text to the sheet's width.
func (s *Sheet) fits(line string) string {
	if s.Width == 0 {
		return line
	}
	return CutWidth(line, s.Width)
}
