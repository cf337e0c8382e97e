package alert

import (
	"time"

	"baton/internal/notify"
)

// lettersAgain is the minimum time between two reports of a job's dead letters, while new letters arrive and the old letters remain.
const lettersAgain = time.Hour

// lettersReported says which dead letters of a job have been reported.
type lettersReported struct {
	more       int64     // the number of dead letters since the last report
	putAt      time.Time // the time of the last dead letter
	reportedAt time.Time // zero if no reported letters remain
}

// LettersPut records that a batch has made dead letters, and reports new dead letters.
func (n *Notifications) LettersPut(name string, records int64) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	j := n.jobs[name]
	if j == nil || len(n.targets) == 0 {
		return
	}
	j.letters.more += records
	j.letters.putAt = time.Now()
	n.reportLetters(name, j)
}

// LettersWait records how many dead letters waited when the database was read. If no letters wait, an operator has handled them, and the
// next dead letter is reported immediately.
func (n *Notifications) LettersWait(name string, waiting int64, asked time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	j := n.jobs[name]
	if j == nil {
		return
	}
	if waiting == 0 && asked.After(j.letters.putAt) {
		j.letters = lettersReported{}
	}
	n.reportLetters(name, j)
}

// reportLetters reports new dead letters. It does not report again too soon, and it does not report before it has read the reports of the
// last leader. The caller holds n.mu.
func (n *Notifications) reportLetters(name string, j *reportedJob) {
	l, now := &j.letters, time.Now()
	if !j.known || l.more == 0 || !l.reportedAt.IsZero() && now.Sub(l.reportedAt) < lettersAgain {
		return
	}
	n.send(notify.Event{Kind: notify.DeadLetters, LockKey: j.lock, Job: name, Count: int(l.more), Text: lettersText(name, l.more)})
	l.more, l.reportedAt = 0, now
}

// Unsettled reports whether the state of a lock's jobs at the beginning of the term is still unknown.
func (n *Notifications) Unsettled(lockKey string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.targets) == 0 {
		return false
	}
	for _, j := range n.jobs {
		if j.lock == lockKey && !j.known {
			return true
		}
	}
	return false
}
