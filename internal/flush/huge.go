package flush

import (
	"runtime/debug"
)

// hugeRecord is a length in bytes. A longer record is huge, and fills a page alone. Writing such a page takes tens of milliseconds, so that
// reading further pages meanwhile gains little. Each further page would need as much memory again.
const hugeRecord = 8 << 20

// huge reports whether the page consists of one huge record.
func (p *Page) huge() bool { return len(p.Records) == 1 && p.Records[0].Size() > hugeRecord }

// release returns free memory to the system. It runs before a huge page is written, to free the memory of the reply, and afterwards, to
// free the memory of the page. Go's garbage collector would keep the memory until twice as much is in use, and one or two such pages need
// more memory than the rest of a node. A collection takes only milliseconds, because a huge record has no pointers to follow.
func release() { debug.FreeOSMemory() }

// settle frees the memory of a huge page, and lets the reader of this page continue.
func (w *pendingPage) settle() {
	if w.settled == nil {
		return
	}
	for i := range w.page.Records {
		clear(w.page.Records[i].Inputs) // the reader may still hold the array of the inputs
	}
	clear(w.page.Records)
	clear(w.batch.Rows)
	clear(w.batch.Dead)
	release()
	close(w.settled)
}
