package paging

import (
	"sync"

	"baton/internal/flush/row"
)

// Memory is where the records of a page lie. Another page may have it once nothing refers to them any more: most of what a flush
// allocates are records.
type Memory struct {
	Records []row.Record
	raws    []row.Raw
	shared  bool // a record of another page lies in it, too
}

var memories = sync.Pool{New: func() any { return new(Memory) }}

// NewMemory has room for so many records.
func NewMemory(records int) *Memory {
	m := memories.Get().(*Memory)
	if m.Records = m.Records[:0]; cap(m.Records) < records {
		m.Records = make([]row.Record, 0, records)
	}
	m.raws, m.shared = m.raws[:0], false
	return m
}

// Raws are the inputs, n of them and empty, of some records. There will be most in all, at a guess.
func (m *Memory) Raws(n, most int) []row.Raw {
	at := len(m.raws)
	if cap(m.raws)-at < n { // those before stay where they are
		m.raws, at = make([]row.Raw, 0, max(n, most-at)), 0
	}
	m.raws = m.raws[:at+n]
	return m.raws[at : at+n : at+n]
}

// Left lets another page have the memory, without the texts in it. Nothing may refer to it any more.
func (m *Memory) Left() {
	if m == nil || m.shared {
		return
	}
	clear(m.Records[:cap(m.Records)])
	clear(m.raws[:cap(m.raws)])
	memories.Put(m)
}
