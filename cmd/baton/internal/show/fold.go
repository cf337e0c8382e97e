package show

import (
	"strings"
)

const (
	// foldedBy is the indentation of a row's second and further lines, in columns.
	foldedBy = 4
	// narrowest is the minimum width, in columns, of a text that is broken into several lines.
	narrowest = 24
)

// fold writes rows that are wider than a terminal, without losing a cell. Columns that do not fit continue in a further line. The last
// cell, which often contains free text, may continue over several lines.
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

// foldLast writes the last cell of a row and ends the row.
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
