package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"baton/bench/internal/rig"
)

// gridPart is the name of the part that compares `baton run` with the best direct writers, with tables of all sizes.
const gridPart = "grid"

// cell is one combination of the factors that may decide the speed of a flush.
type cell struct {
	source, driver string
	table          int    // the number of existing rows; 0: the table grows from empty
	order          string // of the changes
	vacuum         string // PostgreSQL's autovacuum; "" elsewhere
}

const (
	randomOrder = "random"
	keyOrder    = "by key"
	// usualSize is in every selection.
	usualSize = 500_000
)

func gridSources() []string {
	return []string{"hashes", "scan", "list", "stream", "counters"}
}

// gridSizes returns the numbers of rows in the table.
func gridSizes() []int { return []int{0, 10_000, 100_000, usualSize, 1_000_000, 2_000_000, 5_000_000} }

func gridEngines() []engine { return []engine{gridPostgres(), maria(), sqlite()} }

// allCells returns the whole grid.
func allCells() []cell {
	var all []cell
	for _, e := range gridEngines() {
		vacuums := []string{""}
		if e.driver == postgres().driver {
			vacuums = []string{"on", "off"}
		}
		for _, source := range gridSources() {
			for _, table := range gridSizes() {
				for _, order := range []string{randomOrder, keyOrder} {
					for _, vacuum := range vacuums {
						all = append(all, cell{source, e.driver, table, order, vacuum})
					}
				}
			}
		}
	}
	return all
}

// pairs returns the values of every two factors of the cell.
func (c cell) pairs() []string {
	factors := []string{c.source, c.driver, fmt.Sprint(c.table), c.order, c.vacuum}
	var out []string
	for i, a := range factors {
		for j, b := range factors[:i] {
			if a != "" && b != "" {
				out = append(out, fmt.Sprint(j, b, i, a))
			}
		}
	}
	return out
}

// pairwise selects cells. If any two values of two factors occur together in a cell, they also occur together in a selected cell. Every
// source occurs with every database at the usual size.
func pairwise(all []cell) []cell {
	covered := map[string]bool{}
	fresh := func(c cell) (n int) {
		for _, p := range c.pairs() {
			if !covered[p] {
				n++
			}
		}
		return n
	}
	var out []cell
	take := func(from []cell) bool {
		best := slices.MaxFunc(from, func(a, b cell) int { return cmp.Compare(fresh(a), fresh(b)) })
		if fresh(best) == 0 {
			return false
		}
		for _, p := range best.pairs() {
			covered[p] = true
		}
		out = append(out, best)
		return true
	}
	for _, e := range gridEngines() {
		for _, source := range gridSources() {
			take(slices.DeleteFunc(slices.Clone(all), func(c cell) bool {
				return c.source != source || c.driver != e.driver || c.table != usualSize
			}))
		}
	}
	for take(all) {
	}
	return out
}

// selected returns the cells that the options name, ordered by their tables.
func selected(o options) []cell {
	cells := allCells()
	if !o.full && o.cells == "" {
		cells = pairwise(cells)
	}
	asked := strings.Split(o.cells, ",")
	cells = slices.DeleteFunc(cells, func(c cell) bool {
		return !slices.ContainsFunc(asked, func(part string) bool { return strings.Contains(c.String(), part) })
	})
	slices.SortStableFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.data().table, b.data().table), cmp.Compare(a.table, b.table))
	})
	return cells
}

// String returns the name of a cell as in the flag -cells: hashes/postgres/500000/random/off.
func (c cell) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s/%d/%s/%s", c.source, c.driver, c.table, c.order, c.vacuum), "/")
}

func (c cell) data() dataset {
	switch c.source {
	case "hashes":
		if c.order == randomOrder {
			return members() // baton cannot know the order of the rows
		}
		return users()
	case "scan":
		return scannedUsers()
	case "list":
		return listed()
	case "stream":
		return streamed()
	}
	return articles()
}

func (c cell) engine() engine {
	engines := gridEngines()
	return engines[slices.IndexFunc(engines, func(e engine) bool { return e.driver == c.driver })]
}

// ids returns the ids of n rows of the present or future table, in the order of the changes.
func (c cell) ids(n int) []int64 {
	ids := rig.AsTheyArrive(n, max(n, c.table))
	if c.order == keyOrder {
		slices.Sort(ids)
	}
	return ids
}

// sortedBatches sorts each batch by the key, as baton does.
func sortedBatches(ids []int64) []int64 {
	for batch := range slices.Chunk(ids, gridBatch) {
		slices.Sort(batch)
	}
	return ids
}

// gridBatch is the number of rows in a transaction of every contender.
const gridBatch = 5_000
