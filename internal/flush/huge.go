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

// release gives up free memory: before a huge page is written, that of the reply that it came in, and behind it that of
// the page. The collector would keep it until twice as much is in use, and one or two pages of such a length
// are more than all that a node needs otherwise. To collect takes milliseconds: a huge record
// has no pointers that had to be followed.
func release() { debug.FreeOSMemory() }

// settle gives up the memory of a huge page, and lets its reader continue.
func (w *work) settle() {
	if w.settled == nil {
		return
	}
	for i := range w.page.Records {
		clear(w.page.Records[i].Inputs) // what they lie in may still be the reader's
	}
	clear(w.page.Records)
	clear(w.batch.Rows)
	clear(w.batch.Dead)
	release()
	close(w.settled)
}
