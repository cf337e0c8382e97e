package main

import (
	"slices"

	"baton/bench/internal/rig"
)

// gridChart is the file with the grid's chart, relative to the document.
const gridChart = "../docs/grid.svg"

// outcome is the result of a cell: the rows per second, and the CPU time of the database, both relative to the best direct writer. The
// CPU time is 0 if the database has no process.
type outcome struct {
	cell
	speed, databaseCPU float64
}

// drawGrid draws the speed of a flush, and the cost of a flush for the database, by the size of the table.
func drawGrid(outcomes []outcome) string {
	c := rig.Curves{
		Label:  "baton run beside the best direct writer, over the number of rows in the table",
		Places: []string{"0", "10 k", "100 k", "500 k", "1 M", "2 M", "5 M"}, Series: gridSources(),
		Note: "Along the axis: rows that are there. Line: median. Dashed: what is required.",
	}
	sizes := gridSizes()
	panel := func(title, unit string, limit float64, e engine, value func(outcome) float64) {
		p := rig.Panel{Title: title, Unit: unit, Limit: limit}
		for _, o := range outcomes {
			if v := value(o); o.driver == e.driver && v > 0 {
				p.Points = append(p.Points, rig.Point{Place: slices.Index(sizes, o.table), Series: slices.Index(c.Series, o.source), Value: v})
			}
		}
		if len(p.Points) > 0 {
			c.Panels = append(c.Panels, p)
		}
	}
	for _, e := range gridEngines() {
		panel(e.title, "rows a second ÷ direct, more is better", leastOfDirect, e, func(o outcome) float64 { return o.speed })
	}
	for _, e := range gridEngines() {
		panel(e.title, "database's CPU × direct, less is better", mostCPU, e, func(o outcome) float64 { return o.databaseCPU })
	}
	return c.SVG()
}
