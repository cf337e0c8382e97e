package flushtest

import (
	"maps"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// DropTable takes a table away; its rows come back with SetTable.
func (d *Database) DropTable(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tables, name)
}

// Put inserts a row that no flush has written, by its columns.
func (d *Database) Put(table string, values map[string]row.Value) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[table][keyOf(d.tables[table], values)] = values
}

// Rows shows columns of every row, joined by "|" and "-" for NULL. They are found by the
// columns of the first unique index, joined likewise.
func (d *Database) Rows(table string, columns ...string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	shown := make(map[string]string, len(d.rows[table]))
	for key, r := range d.rows[table] {
		shown[key] = show(r, columns)
	}
	return shown
}

// Count is the number of rows of a table.
func (d *Database) Count(table string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rows[table])
}

// Dead are the dead letters, ordered by batch and record.
func (d *Database) Dead() []row.DeadLetter {
	d.mu.Lock()
	defer d.mu.Unlock()
	var dead []row.DeadLetter
	for _, id := range slices.Sorted(maps.Keys(d.dead)) {
		dead = append(dead, d.dead[id])
	}
	return dead
}

// Parts counts what the ledger knows.
func (d *Database) Parts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ledger)
}

// Fence is the fence of a job.
func (d *Database) Fence(job string) flush.Fence {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fences[job]
}

// SetFence sets the fence of a job, whatever it was.
func (d *Database) SetFence(f flush.Fence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fences[f.Job] = f
}

// Place is the position of a shard; "" if none is recorded.
func (d *Database) Place(job, shard string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places[joined(job, shard)]
}

// SetPlace sets the position of a shard, whatever it was.
func (d *Database) SetPlace(job, shard, position string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[joined(job, shard)] = position
}

// Mark is the total of a counter; "" if none is recorded.
func (d *Database) Mark(job, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marks[joined(job, name)]
}

// SetMark sets the total of a counter, whatever it was.
func (d *Database) SetMark(job, name, total string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks[joined(job, name)] = total
}
