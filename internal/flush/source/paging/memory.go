package paging

import (
	"sync"

	"baton/internal/flush/row"
)

// Memory holds the records of a page. Another page may reuse it once nothing refers to these records: records are the largest part of a
// flush's allocations.
type Memory struct {
	Records []row.Record
	raws    []row.Raw
	shared  bool // it also holds a record of another page
}

var memories = sync.Pool{New: func() any { return new(Memory) }}

// NewMemory has room for that many records.
func NewMemory(records int) *Memory {
	m := memories.Get().(*Memory)
	if m.Records = m.Records[:0]; cap(m.Records) < records {
		m.Records = make([]row.Record, 0, records)
	}
	m.raws, m.shared = m.raws[:0], false
	return m
}

// Raws are the empty inputs, n of them, of some records. There will be about most in all.
func (m *Memory) Raws(n, most int) []row.Raw {
	at := len(m.raws)
	if cap(m.raws)-at < n { // earlier ones stay where they are
		m.raws, at = make([]row.Raw, 0, max(n, most-at)), 0
	}
	m.raws = m.raws[:at+n]
	return m.raws[at : at+n : at+n]
}

// Left lets another page reuse the memory, without the texts in it. Nothing may refer to it then.
func (m *Memory) Left() {
	if m == nil || m.shared {
		return
	}
	clear(m.Records[:cap(m.Records)])
	clear(m.raws[:cap(m.raws)])
	memories.Put(m)
}
