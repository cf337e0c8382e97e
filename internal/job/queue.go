package job

import (
	"context"
	"sync/atomic"
	"time"
)

// entry is a job in a session. The loop owns it, but for the two parts that say so.
type entry struct {
	job  Job
	next time.Time

	tried   bool // a slot of this term was begun: earlier ones can no longer be claimed
	busy    bool // a run, or its claim, is in flight
	waiting plan // comes after a claim that is in flight

	cancel context.CancelCauseFunc // ends the run in flight
	wait   time.Duration           // before a job that runs all the time is started again
	paused bool                    // that job is, as far as this node has been told

	misses quiet // of misses, to the log

	claimed atomic.Bool // the run in flight has its slot
	trouble trouble     // owned by the run in flight
}

func (e *entry) always() bool { return IsAlways(e.job.Schedule) }

// queue is a heap of jobs, the one that is due first on top.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next.Before(q[j].next) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*entry); ok {
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
