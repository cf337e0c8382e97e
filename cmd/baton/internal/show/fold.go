package show

import (
	"strings"
)

const (
	// foldedBy is how far a line that goes on with a row is indented.
	foldedBy = 4
	// narrowest is as many columns as are worth a text of several lines.
	narrowest = 24
)

// fold writes rows that are wider than a terminal, without losing a cell. Columns that do not fit
// go below, and the last cell, which is often free text, goes on there.
func fold(b *strings.Builder, rows [][]string, widths []int, width int) {
	for _, row := range rows {
		var line strings.Builder
		last := len(row) - 1
		at := 0
		for i, cell := range row[:last] {
			if at > foldedBy && at+widths[i] > width {
				b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
				line.Reset()
				line.WriteString(strings.Repeat(" ", foldedBy))
				at = foldedBy
			}
			line.WriteString(cell + strings.Repeat(" ", widths[i]-TextWidth(cell)) + between)
			at += widths[i] + len(between)
		}
		foldLast(b, line.String(), row[last], at, width)
	}
}

// foldLast ends a row with its last cell.
func foldLast(b *strings.Builder, line, cell string, at, width int) {
	if at+TextWidth(cell) <= width {
		b.WriteString(strings.TrimRight(line+cell, " ") + "\n")
		return
	}
	if width-at < narrowest {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		line, at = strings.Repeat(" ", foldedBy), foldedBy
	}
	parts := []string{cell}
	if !strings.Contains(cell, "\x1b") {
		parts = Wrap(cell, max(width-at, 1))
	}
	for i, part := range parts {
		if i > 0 {
			line = strings.Repeat(" ", at)
		}
		b.WriteString(line + part + "\n")
	}
}
