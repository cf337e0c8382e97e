package flush

import (
	"runtime/debug"
)

// hugeRecord is the length in bytes above which a record that fills a page alone is huge. A page of it takes tens of milliseconds to
// write, so that reading ahead gains little, and every waiting copy of it is as long again.
const hugeRecord = 8 << 20

// huge reports whether the page is one such record.
func (p *Page) huge() bool { return len(p.Records) == 1 && p.Records[0].Size() > hugeRecord }

// release returns free memory to the system: before a huge page is written that of the reply, and afterwards that of the page. The
// collector would keep it until twice as much is in use, and one or two such pages are more than a node needs for everything else. A
// collection takes milliseconds: a huge record has no pointers to follow.
func release() { debug.FreeOSMemory() }

// settle frees the memory of a huge page, and lets its reader continue.
func (w *work) settle() {
	if w.settled == nil {
		return
	}
	for i := range w.page.Records {
		clear(w.page.Records[i].Inputs) // the reader may still hold the array that they lie in
	}
	clear(w.page.Records)
	clear(w.batch.Rows)
	clear(w.batch.Dead)
	release()
	close(w.settled)
}
