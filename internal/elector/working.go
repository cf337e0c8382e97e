package elector

import "sync/atomic"

// working counts the pieces of a term's work that are in progress. One atomic integer decides which came first, the beginning of a piece of
// work or the hard stop:
//
//	n > 0    n pieces of work are in progress: at the hard stop the process dies
//	0        the term is idle
//	barred   the hard stop has found the term idle: no work begins any more, and no process dies
//
// A simple flag would not be safe, as this example shows: just before the hard stop a run checks the window, and then loses the processor.
// The guard reads in the flag that the term is idle, and lets the process live. Then the run gets the processor again, and acts at the same
// time as the next leader. Nothing would end this run.
type working struct{ state atomic.Int64 }

const barred = -1

// begin counts a piece of work that begins. It returns false if no work may begin any more.
func (w *working) begin() bool {
	for {
		n := w.state.Load()
		if n == barred {
			return false
		}
		if w.state.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (w *working) end() { w.state.Add(-1) }

// bar forbids the beginning of further work, if no work is in progress. Otherwise it forbids nothing and returns false.
func (w *working) bar() bool { return w.state.CompareAndSwap(0, barred) }
