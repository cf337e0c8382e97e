package quorum

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"baton/internal/elector"
)

// defeat returns the answer to an attempt that a majority has not granted.
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
	// The answer contains no epoch, because the highest epoch may belong to a term that one master granted, but no majority. A node in
	// its cool-down would conclude from this epoch that another node has led.
	answer := elector.Answer{Outcome: elector.Wait, Left: left}
	answer.Code, answer.Reason = reason(b.wait)
	if len(b.held) > 0 {
		// Rivals have divided the masters among themselves, and each rival gives its grants back. The first rival that asks again alone
		// wins.
		answer.Left = min(left, l.pauseOfRivals(took))
	}
	return answer, nil
}

// holder returns the node that a majority names as the holder of the lock.
func (l *Lock) holder(b *ballot) (name string, sure bool) {
	count := map[string]int{}
	for _, r := range b.held {
		if count[r.value.Holder]++; count[r.value.Holder] >= l.majority {
			return r.value.Holder, true
		}
	}
	return "", false
}

// termEpoch returns the most frequent epoch in the answers that name this holder.
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

// The method left returns the time until enough masters can be free for a majority to grant the lock. The master that is free last does not
// matter, because its clock may have been set back.
func (l *Lock) left(b *ballot) time.Duration {
	waits := make([]time.Duration, len(b.won), len(l.lanes)) // the masters that granted the lock are free at once
	for _, answers := range [][]reply[elector.Answer]{b.held, b.wait} {
		for _, r := range answers {
			waits = append(waits, r.value.Left)
		}
	}
	slices.Sort(waits)
	return waits[l.majority-1]
}

// reason returns the most frequent reason of the masters that make every candidate wait.
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

// longestDoubling limits how often the pause of rivals that keep colliding is doubled.
const longestDoubling = 10

// pauseOfRivals returns a random pause. The first pause is at most twice the time of an attempt, and the limit doubles after each
// further failed attempt.
func (l *Lock) pauseOfRivals(took time.Duration) time.Duration {
	l.mu.Lock()
	l.splits = min(l.splits+1, longestDoubling)
	limit := max(took, atLeast) << l.splits
	l.mu.Unlock()
	return rand.N(min(limit, l.opts.TTL))
}
