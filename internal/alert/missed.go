package alert

import (
	"time"

	"baton/internal/job"
	"baton/internal/notify"
	"baton/internal/text"
)

// The first of several consecutive missed slots is reported immediately. Later slots are reported together: after one minute, after two
// more minutes, after four more minutes, and so on, up to an interval of one hour.
const (
	missedTogether = time.Minute
	missedMost     = time.Hour
)

type missKey struct {
	job    string
	reason job.Reason
}

// missWindow contains the slots that were missed since the last report.
type missWindow struct {
	all   job.Missed // Count 0 means no slots
	open  time.Duration
	timer *time.Timer
}

// Missed reports slots without a run. It does not report slots during a pause, because an operator has ordered the pause.
func (n *Notifications) Missed(m job.Missed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.targets) == 0 || m.Count <= 0 || m.Reason == job.ReasonPaused {
		return
	}
	key := missKey{m.Job, m.Reason}
	w := n.misses[key]
	if w == nil {
		n.tellMissed(m)
		w = &missWindow{open: missedTogether}
		w.timer = time.AfterFunc(w.open, func() { n.missedLately(key, w) })
		n.misses[key] = w
		return
	}
	if w.all.Count == 0 {
		w.all = m
		return
	}
	w.all.Count += m.Count
	w.all.Slot = m.Slot
	if m.Err != nil {
		w.all.Err = m.Err
	}
}

// missedLately reports the slots that were missed since the last report.
func (n *Notifications) missedLately(key missKey, w *missWindow) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.misses[key] != w {
		return // the window was closed
	}
	if w.all.Count == 0 {
		delete(n.misses, key)
		return
	}
	n.tellMissed(w.all)
	w.all = job.Missed{}
	w.open = min(2*w.open, missedMost)
	w.timer.Reset(w.open)
}

// reportMissed immediately reports all missed slots that would be reported later. The caller holds n.mu.
func (n *Notifications) reportMissed() {
	for key, w := range n.misses {
		w.timer.Stop()
		if w.all.Count > 0 {
			n.tellMissed(w.all)
		}
		delete(n.misses, key)
	}
}

func (n *Notifications) tellMissed(m job.Missed) {
	j := n.jobs[m.Job]
	if j == nil {
		return // the job was removed from the configuration
	}
	e := notify.Event{
		Kind: notify.Missed, LockKey: j.lock, Job: m.Job, Slot: m.Slot.UTC(), Reason: string(m.Reason), Count: m.Count,
		ConsecutiveFailures: j.failures, Text: missedText(m),
	}
	if m.Err != nil {
		e.Error = text.Clip(m.Err.Error(), 4096)
	}
	n.send(e)
}
