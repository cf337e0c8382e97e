package job

import (
	"container/heap"
	"time"
)

// place is a job in the loop.
type place struct {
	*machine
	index   int       // in the queue; -1: not in the queue
	at      time.Time // time of its next handling
	misses  quiet     // limits log lines about misses
	trouble trouble   // has a lock of its own
}

// queue is a heap of jobs by the time of their next handling.
type queue []*place

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if p, ok := x.(*place); ok {
		p.index = len(*q)
		*q = append(*q, p)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	p.index = -1
	return p
}

// set places a job by its next handling; zero removes it.
func (q *queue) set(p *place, at time.Time) {
	p.at = at
	switch {
	case at.IsZero() && p.index >= 0:
		heap.Remove(q, p.index)
	case at.IsZero():
	case p.index >= 0:
		heap.Fix(q, p.index)
	default:
		heap.Push(q, p)
	}
}
