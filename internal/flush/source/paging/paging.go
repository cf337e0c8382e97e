// Package paging cuts the records of a source into pages, by rows and by bytes, and sets the size of a single reading. It does not depend
// on any source.
package paging

import (
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// Depth is the most rows that are requested before the replies are read. Twice as many gain almost nothing, and cost memory in Redis and
// here.
const Depth = 1000

// Bytes is the aim for the bytes of a page, from the job's setting, 0 for 8 MiB: the pages of all lanes are in memory at the same time.
func Bytes(ofJob, lanes int) int {
	if ofJob <= 0 {
		ofJob = 8 << 20
	}
	return max(1, ofJob/max(1, lanes))
}

// Reply is the aim for the bytes of one reading, for a page of that many bytes.
func Reply(page int) int { return max(1, min(page/4, 1<<20)) }

// mostRoom is the most records that a page has room for from the beginning.
const mostRoom = 10_000

// Filler fills pages with records by their ids. The size of a reading follows the earlier replies.
type Filler struct {
	redisconn.Pace
	bytes  int          // the aim for a page
	waits  []row.Record // read already, and too long for the page before
	most   int          // of the page
	read   []row.Record // reused: see Records
	memory *Memory      // of the newest page; nil once it is handed over
}

// NewFiller makes pages of that many bytes.
func NewFiller(bytes int) Filler {
	return Filler{Pace: redisconn.NewPace(Depth, Reply(bytes)), bytes: bytes}
}

// Fill makes a page of the records of ids, as many as fit. read reads the records of ids in their order: of at least one id, or of all
// ids that it gets but the last ones. A record that is too long for a page is a page alone. The ids of the next page follow those of this
// one.
func (f *Filler) Fill(ids []string, read func(ids []string) ([]row.Record, error)) (page []row.Record, err error) {
	f.most = min(len(ids), mostRoom)
	f.memory = NewMemory(f.most)
	page = f.memory.Records
	for size := 0; len(page) < len(ids); {
		if len(f.waits) == 0 {
			some := ids[len(page):]
			if f.waits, err = read(some[:min(f.Depth(), len(some))]); err != nil {
				return nil, err
			}
			f.Learn(Paced(f.waits))
		}
		fit, bytes := Fitting(f.waits, f.bytes-size, len(page) == 0)
		size += bytes
		page = append(page, f.waits[:fit]...)
		if f.waits = f.waits[fit:]; len(f.waits) > 0 {
			f.memory.shared = true
			break
		}
		f.waits = nil // an empty slice would keep its records in memory
		clear(f.read)
	}
	f.memory.Records = page
	return page, nil
}

// Left returns the function to call once the newest page has left its stage. The Filler forgets that page's memory.
func (f *Filler) Left() func() {
	m := f.memory
	f.memory = nil
	return m.Left
}

// Records are n empty records with that many inputs each, for the results of Fill's read: Fill copies them into the page.
func (f *Filler) Records(n, inputs int) []row.Record {
	if len(f.read) < n {
		f.read = make([]row.Record, n)
	}
	records := f.read[:n]
	for i := range records {
		records[i] = row.Record{Inputs: f.memory.Raws(inputs, f.most*inputs)}
	}
	return records
}

// Fitting is how many of the records fit into that many bytes, and their bytes; in an empty page the first one always fits.
func Fitting(records []row.Record, into int, alone bool) (n, bytes int) {
	for ; n < len(records); n++ {
		next := records[n].Size()
		if bytes+next > into && (n > 0 || !alone) {
			break
		}
		bytes += next
	}
	return n, bytes
}

// Part is how many of the records make the part that begins with the first one: it ends by the number of rows, and by the bytes of the
// keys, where 0 is no limit. left is the number of all remaining records. whole is false if the records read so far do not decide yet; a
// first record that is too long decides alone.
//
// The ledger knows a list's parts by their numbers: so this is a format, and must survive upgrades.
func Part(read []row.Record, rows, bytes, left int64) (n int, whole bool) {
	var has int64
	for n = range read {
		if has += int64(len(read[n].Key)); int64(n) == rows || n > 0 && bytes > 0 && has > bytes {
			return n, true
		}
	}
	n = len(read)
	return n, int64(n) == min(rows, left) || n == 1 && bytes > 0 && has > bytes
}

// Paced describes the size of records that came together.
func Paced(records []row.Record) redisconn.Paced {
	p := redisconn.Paced{Records: len(records)}
	for i := range records {
		size := records[i].Size()
		p.Bytes, p.Largest = p.Bytes+size, max(p.Largest, size)
	}
	return p
}
