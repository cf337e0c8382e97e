package alert

import (
	"time"

	"baton/internal/notify"
)

// lettersAgain is how often a job's dead letters are reported while more come, and no operator
// sees to them.
const lettersAgain = time.Hour

// lettersReported is what has been reported of a job's dead letters.
type lettersReported struct {
	more       int64     // put aside since
	putAt      time.Time // the last of them
	reportedAt time.Time // zero: none wait that have been reported
}

// LettersPut notes that records were put aside, and reports it if it is news.
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

// LettersWait notes how many dead letters waited when the database was asked. Where none do they
// have been seen to, and the next is news at once.
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

// reportLetters reports what was put aside, but not again too soon, nor before it is known what the
// last leader reported. n.mu is held.
func (n *Notifications) reportLetters(name string, j *reportedJob) {
	l, now := &j.letters, time.Now()
	if !j.known || l.more == 0 || !l.reportedAt.IsZero() && now.Sub(l.reportedAt) < lettersAgain {
		return
	}
	n.send(notify.Event{Kind: notify.DeadLetters, LockKey: j.lock, Job: name, Count: int(l.more), Text: lettersText(name, l.more)})
	l.more, l.reportedAt = 0, now
}

// Unsettled reports whether it is still to be learned how jobs of a lock stood when the term began.
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
