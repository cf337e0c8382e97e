package flush

import (
	"runtime/debug"
)

// hugeRecord is the length, in bytes, from which on a record that is a page by itself is huge. A
// page of it takes tens of milliseconds to write, so that reading ahead gains little, and every
// copy of it that waits is as long again.
const hugeRecord = 8 << 20

// huge reports whether the page is one such record.
func (p *Page) huge() bool { return len(p.Records) == 1 && p.Records[0].Size() > hugeRecord }

// settle gives up the memory of a huge page, and lets its reader continue. The collector would
// keep what is free of it until twice as much is in use, and one or two pages of such a length
// are more than all that a node needs otherwise. To collect takes milliseconds: a huge record
// has no pointers that had to be followed.
func (w *work) settle() {
	if w.settled == nil {
		return
	}
	clear(w.page.Records)
	clear(w.batch.Rows)
	clear(w.batch.Dead)
	debug.FreeOSMemory()
	close(w.settled)
}
