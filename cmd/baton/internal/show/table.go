package show

import (
	"bytes"
	"io"
	"strings"
)

// Table is a writer that aligns cells in columns. Like in a tabwriter, each cell ends with a tab. Unlike in a tabwriter, colours have no
// width, wide characters count as two columns, and on a terminal no row is longer than a line. Lines without a tab stay unchanged, and
// begin a new table.
type Table struct {
	out  io.Writer
	text bytes.Buffer
}

// NewTable returns a table that writes to out.
func NewTable(out io.Writer) *Table { return &Table{out: out} }

// Write stores p and never fails. Flush writes the stored text, and returns the errors.
func (t *Table) Write(p []byte) (int, error) { return t.text.Write(p) }

func (t *Table) colours() bool {
	s, ok := t.out.(interface{ colours() bool })
	return ok && s.colours()
}

// Flush writes the stored rows.
func (t *Table) Flush() error {
	var b strings.Builder
	var rows [][]string
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		t.align(&b, rows)
		rows = nil
		b.WriteString(line + "\n")
	}
	t.align(&b, rows)
	t.text.Reset()
	_, err := io.WriteString(t.out, b.String())
	return err
}

// between is the text between two columns.
const between = "  "

func (t *Table) align(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], TextWidth(cell))
		}
	}
	if s, ok := t.out.(*Sheet); ok && s.Width > 0 && !s.Live {
		fold(b, rows, widths, s.Width)
		return
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-TextWidth(cell)) + between)
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if s, ok := t.out.(*Sheet); ok {
			text = s.fits(text)
		}
		b.WriteString(text + "\n")
	}
}
