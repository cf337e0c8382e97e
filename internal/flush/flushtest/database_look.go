package flushtest

import (
	"maps"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// DropTable removes a table. A later call of SetTable restores the table with its rows.
func (d *Database) DropTable(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tables, name)
}

// Put inserts a row that no flush has written. values maps its columns to their values.
func (d *Database) Put(table string, values map[string]row.Value) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[table][keyOf(d.tables[table], values)] = values
}

// Rows returns the given columns of every row, joined by "|", with "-" for NULL. In the returned map, the key of a row is the text of the
// columns of the first unique index, joined in the same way.
func (d *Database) Rows(table string, columns ...string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	shown := make(map[string]string, len(d.rows[table]))
	for key, r := range d.rows[table] {
		shown[key] = show(r, columns)
	}
	return shown
}

// Count returns the number of rows of a table.
func (d *Database) Count(table string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rows[table])
}

// Dead returns the dead letters, ordered by batch and record.
func (d *Database) Dead() []row.DeadLetter {
	d.mu.Lock()
	defer d.mu.Unlock()
	var dead []row.DeadLetter
	for _, id := range slices.Sorted(maps.Keys(d.dead)) {
		dead = append(dead, d.dead[id])
	}
	return dead
}

// Parts returns the number of entries in the ledger.
func (d *Database) Parts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ledger)
}

// Fence returns the fence of a job.
func (d *Database) Fence(job string) flush.Fence {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fences[job]
}

// SetFence replaces the fence of a job, and checks nothing.
func (d *Database) SetFence(f flush.Fence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fences[f.Job] = f
}

// Place returns the position of a shard, or "" if none is recorded.
func (d *Database) Place(job, shard string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places[joined(job, shard)]
}

// SetPlace replaces the position of a shard, and checks nothing.
func (d *Database) SetPlace(job, shard, position string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[joined(job, shard)] = position
}

// Mark returns the total of a counter, or "" if none is recorded.
func (d *Database) Mark(job, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marks[joined(job, name)]
}

// SetMark replaces the total of a counter, and checks nothing.
func (d *Database) SetMark(job, name, total string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks[joined(job, name)] = total
}
