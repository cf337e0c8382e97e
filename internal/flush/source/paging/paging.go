// Package paging cuts what a source reads into pages, by rows and by bytes, and says how much is
// asked for at once. It knows no source.
package paging

import (
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// Depth is how many rows at most are asked for before the replies are read. Twice
// as many gains next to nothing, and costs memory in Redis and here.
const Depth = 1000

// Bytes is the aim for the bytes of a page where the job says so many, 0 for 8 MiB: the lanes
// have their pages at the same time.
func Bytes(ofJob, lanes int) int {
	if ofJob <= 0 {
		ofJob = 8 << 20
	}
	return max(1, ofJob/max(1, lanes))
}

// Reply is how much of a page of so many bytes is asked for at once, in bytes.
func Reply(page int) int { return max(1, min(page/4, 1<<20)) }

// mostRoom is for how many records a page has room from the beginning.
const mostRoom = 10_000

// Filler fills pages with records that are known by their ids. How much is asked for at once
// follows the replies.
type Filler struct {
	redisconn.Pace
	bytes  int          // the aim for a page
	waits  []row.Record // that were read and are too long for the page before
	most   int          // records of the page
	read   []row.Record // reused: see Records
	memory *Memory      // of the page that was filled last; nil once it is handed over
}

// NewFiller makes pages of so many bytes.
func NewFiller(bytes int) Filler {
	return Filler{Pace: redisconn.NewPace(Depth, Reply(bytes)), bytes: bytes}
}

// Fill makes a page of the records of ids, as many as fit. read reads those of some ids in
// their order, of one at least, or of fewer than it is given. A record that is too long for a page
// is one by itself. The ids of the next page follow those of this one.
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
		f.waits = nil // or a record would be kept in memory behind the page
		clear(f.read)
	}
	f.memory.Records = page
	return page, nil
}

// Left is what is to be called once the page that was filled last has left. Here it is not kept in memory any more.
func (f *Filler) Left() func() {
	m := f.memory
	f.memory = nil
	return m.Left
}

// Records are n empty records with that many inputs each, for what Fill reads: they are copied into the page.
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

// Fitting is how many of the records fit into so many bytes, and how many these have; where
// nothing else is in a page the first one does always.
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

// Part is how many of the records are the part that begins with the first of them: so many by
// rows, and by the bytes of their keys, of 0 which is no limit. left is how many there are in all.
// whole is false where those that were read do not tell yet; one that is too long by itself does.
//
// A list's parts are in the ledger by their number: this is a format, and outlives an upgrade.
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

// Paced says of records that came together how large they are.
func Paced(records []row.Record) redisconn.Paced {
	p := redisconn.Paced{Records: len(records)}
	for i := range records {
		size := records[i].Size()
		p.Bytes, p.Largest = p.Bytes+size, max(p.Largest, size)
	}
	return p
}
