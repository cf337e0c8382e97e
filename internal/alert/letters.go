package alert

import (
	"time"

	"baton/internal/notify"
)

// lettersAgain is how often a job's dead letters are reported while more come, and the old ones stay.
const lettersAgain = time.Hour

// lettersReported tells which dead letters of a job have been reported.
type lettersReported struct {
	more       int64     // put aside since
	putAt      time.Time // the last of them
	reportedAt time.Time // zero: no reported ones wait
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

// LettersWait notes how many dead letters waited when the database was read. If none wait, an operator has dealt with them, and the next
// one is reported at once.
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

// reportLetters reports new dead letters, but not again too soon, nor before the last leader's reports are learned. n.mu is held.
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
