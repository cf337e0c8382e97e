package job

import (
	"container/heap"
	"time"
)

// queue is a heap of jobs, the one that the loop looks at first on top.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*entry); ok {
		e.index = len(*q)
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.index = -1
	return e
}

// set gives an entry its place by when it is to be looked at; never if that is zero.
func (q *queue) set(e *entry, at time.Time) {
	e.at = at
	switch {
	case at.IsZero() && e.index >= 0:
		heap.Remove(q, e.index)
	case at.IsZero():
	case e.index >= 0:
		heap.Fix(q, e.index)
	default:
		heap.Push(q, e)
	}
}

// requeue puts a job where it belongs in the queue after anything about it has changed.
func (s *session) requeue(e *entry) {
	now := s.now()
	s.queue.set(e, s.lookAt(e, now))
	switch {
	case e.removed || e.next.IsZero():
		s.noteNext(e.job.Name, time.Time{})
	default:
		s.noteNext(e.job.Name, e.due(e.next))
	}
}

// lookAt is when something is to be done about a job that nobody but the clock tells of.
func (s *session) lookAt(e *entry, now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if !e.next.IsZero() && !e.removed {
		sooner(latest(e.due(e.next), e.ahead))
	}
	if e.retry != nil {
		sooner(e.retry.At)
	}
	for _, it := range e.line {
		if d := e.job.StartingDeadline; d > 0 && it.slotted() {
			sooner(it.due.Add(d + time.Millisecond))
		}
	}
	if len(e.line) > 0 || !e.backlog.empty() {
		for _, until := range []time.Time{e.mendBy, e.oldest.Add(patience)} {
			if left := time.Until(until); left > 0 {
				sooner(now.Add(left + time.Millisecond))
			}
		}
	}
	return at
}
