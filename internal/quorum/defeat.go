package quorum

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"baton/internal/elector"
)

// defeat is the answer to an attempt that a majority has not granted.
func (l *Lock) defeat(b *ballot, took time.Duration) (elector.Answer, error) {
	if b.answered() < l.majority {
		return elector.Answer{}, l.tooFew("acquire", b.answered(), b.silent, b.failed)
	}
	left := l.left(b)
	if name, sure := l.holder(b); sure {
		l.mu.Lock()
		l.splits = 0
		l.mu.Unlock()
		return elector.Answer{Outcome: elector.Held, Holder: name, Epoch: termEpoch(b.held, name), Left: left}, nil
	}
	// It tells no epoch: the highest may be of a term that one master has granted and no
	// majority did. Whoever stands aside would take that for others having led.
	answer := elector.Answer{Outcome: elector.Wait, Left: left}
	answer.Code, answer.Reason = reason(b.wait)
	if len(b.held) > 0 {
		// Rivals have divided the masters among themselves, and all of them give back
		// what they have. Who comes back first, alone, wins.
		answer.Left = min(left, l.pauseOfRivals(took))
	}
	return answer, nil
}

// holder is the node that a majority says holds the lock.
func (l *Lock) holder(b *ballot) (name string, sure bool) {
	count := map[string]int{}
	for _, r := range b.held {
		if count[r.value.Holder]++; count[r.value.Holder] >= l.majority {
			return r.value.Holder, true
		}
	}
	return "", false
}

// termEpoch is the epoch that most of those who name the holder know of its term.
func termEpoch(held []reply[elector.Answer], name string) int64 {
	count := map[int64]int{}
	var most int64
	for _, r := range held {
		if r.value.Holder != name {
			continue
		}
		e := r.value.Epoch
		count[e]++
		if count[e] > count[most] || count[e] == count[most] && e > most {
			most = e
		}
	}
	return most
}

// left is when so many masters can be free that a majority might grant the lock.
// The one that is free the latest does not matter: its clock may have been set back.
func (l *Lock) left(b *ballot) time.Duration {
	waits := make([]time.Duration, len(b.won), len(l.lanes)) // free at once
	for _, answers := range [][]reply[elector.Answer]{b.held, b.wait} {
		for _, r := range answers {
			waits = append(waits, r.value.Left)
		}
	}
	slices.Sort(waits)
	return waits[l.majority-1]
}

// reason is what most of those say that make everybody wait.
func reason(wait []reply[elector.Answer]) (code elector.Code, words string) {
	type why struct {
		code  elector.Code
		words string
	}
	count := map[why]int{}
	for _, r := range wait {
		count[why{r.value.Code, r.value.Reason}]++
	}
	var most why
	for w, n := range count {
		if c := cmp.Compare(n, count[most]); most.words == "" || c > 0 || c == 0 && w.words < most.words {
			most = w
		}
	}
	return most.code, most.words
}

// longestDoubling keeps the pause of rivals that do not find an end in bounds.
const longestDoubling = 10

// pauseOfRivals is a random pause, of at most twice as long as an attempt takes at
// first, and twice that after every further one that was in vain.
func (l *Lock) pauseOfRivals(took time.Duration) time.Duration {
	l.mu.Lock()
	l.splits = min(l.splits+1, longestDoubling)
	limit := max(took, atLeast) << l.splits
	l.mu.Unlock()
	return rand.N(min(limit, l.opts.TTL))
}
