package job

import (
	"container/heap"
	"time"
)

// scheduledJob is a job in the loop.
type scheduledJob struct {
	*machine
	index    int        // in the queue; -1: not in the queue
	at       time.Time  // time when the job is next handled
	missLog  logLimiter // limits log lines about misses
	failures failureLog // has its own lock
}

// queue is a heap of jobs, ordered by the time when each job is next handled.
type queue []*scheduledJob

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if p, ok := x.(*scheduledJob); ok {
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

// set places a job by the time when it is next handled. A zero time removes the job.
func (q *queue) set(p *scheduledJob, at time.Time) {
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
