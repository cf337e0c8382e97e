// Package paging cuts the records of a source into pages, by rows and by bytes, and chooses how much each command reads. The package does
// not depend on any source.
//
//	Filler  fills pages with the records of ids, until a page has the desired bytes
//	Part    finds the end of a part of a list; its rule is a stored format
//	Memory  the memory of a page's records, which a later page uses again
//
// What fails, and what then:
//
//   - A record is longer than a page: it gets a page of its own.
//   - The records of a reply do not all fit into the page: the next page begins with the remaining records, and the memory of the first
//     page is not used again.
package paging

import (
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// Depth is the maximum number of rows that are requested before the replies are read. A higher limit would gain almost nothing, and would
// cost memory in Redis and in this process.
const Depth = 1000

// Bytes returns the desired size of a page in bytes. The argument ofJob is the job's setting for all lanes together, where 0 means 8 MiB.
// The lanes share this size, since the pages of all lanes are in memory at the same time.
func Bytes(ofJob, lanes int) int {
	if ofJob <= 0 {
		ofJob = 8 << 20
	}
	return max(1, ofJob/max(1, lanes))
}

// Reply returns the desired size of one reply in bytes. The argument page is the size of the page in bytes.
func Reply(page int) int { return max(1, min(page/4, 1<<20)) }

// mostRoom limits the number of records for which a new page allocates room.
const mostRoom = 10_000

// Filler fills pages with the records of ids. The sizes of earlier replies decide how much the next command reads.
type Filler struct {
	redisconn.Pace
	bytes  int          // the desired bytes of a page
	waits  []row.Record // records that were read, and were too long for the previous page
	most   int          // the maximum records of the page
	read   []row.Record // reused: see Records
	memory *Memory      // the memory of the newest page; nil after Left was called
}

// NewFiller returns a Filler for pages of that many bytes.
func NewFiller(bytes int) Filler {
	return Filler{Pace: redisconn.NewPace(Depth, Reply(bytes)), bytes: bytes}
}

// Fill returns a page with the records of as many ids as fit. The function read reads the records of ids in their order. It reads at least
// one id, and may leave out the last ids. A record that is too long for a page gets a page of its own. The caller continues with the first
// id whose record is not in the page.
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

// Left returns the function that must be called once the newest page has left its stage. The Filler forgets that page's memory.
func (f *Filler) Left() func() {
	m := f.memory
	f.memory = nil
	return m.Left
}

// Records returns n empty records for the results of the function read that Fill calls. The argument inputs is the number of inputs of each
// record. Fill copies the records into the page.
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

// Fitting returns how many of the first records fit into the given number of bytes, and the length of these records in bytes. If alone is
// true, the first record always fits.
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

// Part returns how many of the records belong to the part that begins with the first record. A part has at most the given number of rows.
// The keys of its records have at most the given number of bytes, where 0 means no limit. The argument left is the number of all remaining
// records. The result whole is false if the records that were read do not show the end of the part. If the first record is too long, it is
// a part of its own.
//
// The ledger identifies a list's parts by their numbers, so the rule for the cut is a stored format, which must survive upgrades.
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

// Paced returns the size of records that arrived together.
func Paced(records []row.Record) redisconn.Paced {
	p := redisconn.Paced{Records: len(records)}
	for i := range records {
		size := records[i].Size()
		p.Bytes, p.Largest = p.Bytes+size, max(p.Largest, size)
	}
	return p
}
