package show

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Sheet is a writer for people. It has a width, and may show colours.
type Sheet struct {
	io.Writer
	Colour bool
	Width  int // 0 means no limit
	// Live means that the output is a screen that is drawn repeatedly, so rows are cut at the width. Otherwise a long row continues in
	// further lines.
	Live bool
}

// lookup returns the value of an environment variable.
type lookup = func(name string) (value string, ok bool)

// NewSheet returns a Sheet that writes to w.
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

// SheetOf returns a Sheet that writes to w, with or without colours. It is width columns wide; 0 means no limit.
func SheetOf(w io.Writer, colour bool, width int) *Sheet {
	return &Sheet{Writer: w, Colour: colour, Width: width}
}

// These are the values of the flag --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

// colourFlag is the value of the flag --color.
type colourFlag string

// String implements pflag.Value, together with Set and Type.
func (c *colourFlag) String() string { return string(*c) }

// Set sets the value. It accepts "auto", "always" or "never".
func (c *colourFlag) Set(s string) error {
	switch s {
	case colourAuto, colourAlways, colourNever:
		*c = colourFlag(s)
		return nil
	}
	return fmt.Errorf("must be %s, %s or %s", colourAuto, colourAlways, colourNever)
}

// Type returns the name of the flag's value in the help text.
func (c *colourFlag) Type() string { return "when" }

// AddColourFlag adds the flag --color to root.
func AddColourFlag(root *cobra.Command) {
	when := colourFlag(colourAuto)
	root.PersistentFlags().Var(&when, "color", "colours: auto, always or never; auto is on a terminal, unless $NO_COLOR is set")
	_ = root.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{colourAuto, colourAlways, colourNever}, cobra.ShellCompDirectiveNoFileComp))
}

// takesColour reports whether to write colours to w, see no-color.org. The flag --color overrides the environment.
func takesColour(cmd *cobra.Command, getenv lookup, w io.Writer) bool {
	if f := cmd.Flag("color"); f != nil && f.Value.String() != colourAuto {
		return f.Value.String() == colourAlways
	}
	noColour, _ := getenv("NO_COLOR")
	term, _ := getenv("TERM")
	_, terminal := TerminalSize(w)
	return terminal && noColour == "" && term != "dumb" && term != ""
}

// Colour is the colour of a state. The words of the state have the same meaning without colours.
type Colour string

// The colours are from the sixteen colours that users can choose in their terminal.
const (
	Good   Colour = "32" // the node leads, or the run succeeded
	Bad    Colour = "31" // something fails or is lost
	Uneasy Colour = "33" // something is late, paused, or may fail soon
	Dim    Colour = "2"  // the text is unimportant
	Strong Colour = "1"  // the text is to be read first
)

// Paint returns text in a colour, or without a colour if w does not show colours.
func Paint(w io.Writer, c Colour, text string) SafeText {
	text = Clean(text)
	s, ok := w.(interface{ colours() bool })
	if !ok || !s.colours() || text == "" || c == "" {
		return SafeText(text)
	}
	return SafeText("\x1b[" + string(c) + "m" + text + "\x1b[0m")
}

func (s *Sheet) colours() bool { return s.Colour }

// fits cuts a line of free text to the sheet's width.
func (s *Sheet) fits(line string) string {
	if s.Width == 0 {
		return line
	}
	return CutWidth(line, s.Width)
}
