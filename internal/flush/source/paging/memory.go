package paging

import (
	"sync"

	"baton/internal/flush/row"
)

// Memory is the memory for the records of a page. Another page may reuse it once nothing refers to these records. Reusing it saves much,
// because records are the largest part of a flush's allocations.
type Memory struct {
	Records []row.Record
	raws    []row.Raw
	shared  bool // the memory also contains a record of another page
}

var memories = sync.Pool{New: func() any { return new(Memory) }}

// NewMemory returns a Memory with room for that many records.
func NewMemory(records int) *Memory {
	m := memories.Get().(*Memory)
	if m.Records = m.Records[:0]; cap(m.Records) < records {
		m.Records = make([]row.Record, 0, records)
	}
	m.raws, m.shared = m.raws[:0], false
	return m
}

// Raws returns n empty inputs. The argument most is approximately the number of inputs of the whole page.
func (m *Memory) Raws(n, most int) []row.Raw {
	at := len(m.raws)
	if cap(m.raws)-at < n { // the inputs that were returned before keep their old memory
		m.raws, at = make([]row.Raw, 0, max(n, most-at)), 0
	}
	m.raws = m.raws[:at+n]
	return m.raws[at : at+n : at+n]
}

// Left clears the memory, so that another page can reuse it. Nothing may refer to the memory when Left is called.
func (m *Memory) Left() {
	if m == nil || m.shared {
		return
	}
	clear(m.Records[:cap(m.Records)])
	clear(m.raws[:cap(m.raws)])
	memories.Put(m)
}
