package chaos

import "maps"

// row is one row of a hashes job. An empty email means that there is no email.
type row struct{ name, version, email string }

// state is the content that the tables must have at the end, as the writers know it.
type state struct {
	counters map[string]map[string]int64 // table, id
	rows     map[string]map[string]row
	// These are the numbers of writes: increments of counters, rows put, rows dropped.
	increments, puts, drops int64
}

func newState() *state {
	return &state{counters: map[string]map[string]int64{}, rows: map[string]map[string]row{}}
}

func (s *state) count(table, id string, delta int64) {
	of(s.counters, table)[id] += delta
	s.increments++
}

func (s *state) put(table, id string, r row) {
	of(s.rows, table)[id] = r
	s.puts++
}

func (s *state) drop(table, id string) {
	delete(of(s.rows, table), id)
	s.drops++
}

// add adds the state of another writer. Rows of two writers never have the same id.
func (s *state) add(other *state) {
	for table, counters := range other.counters {
		for id, n := range counters {
			of(s.counters, table)[id] += n
		}
	}
	for table, rows := range other.rows {
		maps.Copy(of(s.rows, table), rows)
	}
	s.increments += other.increments
	s.puts += other.puts
	s.drops += other.drops
}

func of[V any](m map[string]map[string]V, table string) map[string]V {
	if m[table] == nil {
		m[table] = map[string]V{}
	}
	return m[table]
}
