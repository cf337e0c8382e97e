package slots

import (
	"fmt"
	"slices"
	"time"
)

// judge holds the evidence against every rule.
func judge(e evidence) []string {
	return slices.Concat(once(e), accounted(e), caughtUp(e), inItsTerm(e), alone(e), truthful(e))
}

// of finds a job's own part.
func (e evidence) of(job string) (runs []run, entries []entry) {
	for _, r := range e.runs {
		if r.job == job {
			runs = append(runs, r)
		}
	}
	for _, h := range e.entries {
		if h.job == job {
			entries = append(entries, h)
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return int(a.began - b.began) })
	return runs, entries
}

// slotTime is how a slot is told.
func slotTime(at time.Time) string { return at.UTC().Format("15:04:05.000") }

func (r run) String() string {
	return fmt.Sprintf("run %s (%s, attempt %d, on %s in epoch %d, begun at %s)", r.id, r.trigger, r.attempt, r.node, r.epoch, slotTime(r.at))
}

// once: an attempt of a slot starts once at most, attempts are counted without a gap, and
// nobody runs what is not a slot.
func once(e evidence) (wrong []string) {
	for _, s := range e.jobs {
		runs, _ := e.of(s.name)
		attempts := map[int64][]run{}
		for _, r := range runs {
			if !s.latest(r.slot).Equal(r.slot) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is not of its schedule: %v", s.name, slotTime(r.slot), r))
			}
			if r.at.Before(r.slot) {
				wrong = append(wrong, fmt.Sprintf("%s: slot %s was started before its time: %v", s.name, slotTime(r.slot), r))
			}
			for _, other := range attempts[r.slot.UnixMilli()] {
				if other.attempt == r.attempt {
					wrong = append(wrong, fmt.Sprintf("%s: slot %s was started twice: %v and %v", s.name, slotTime(r.slot), other, r))
				}
			}
			attempts[r.slot.UnixMilli()] = append(attempts[r.slot.UnixMilli()], r)
			if most := s.mostAttempts(); most > 0 && (len(attempts[r.slot.UnixMilli()]) > most || r.attempt > most) {
				wrong = append(wrong, fmt.Sprintf("%s: slot %s was started more than %d times: %v", s.name, slotTime(r.slot), most, r))
			}
		}
	}
	return wrong
}

// accounted: every slot is started, or the history says why it was not, and never both.
func accounted(e evidence) (wrong []string) {
	for _, s := range e.jobs {
		runs, entries := e.of(s.name)
		started, claimed, missed := map[int64]bool{}, map[int64]bool{}, map[int64]string{}
		for _, r := range runs {
			started[r.slot.UnixMilli()] = true
		}
		for _, h := range entries {
			if !h.missed() {
				claimed[h.slot.UnixMilli()] = true
				continue
			}
			if h.count == 0 {
				continue
			}
			slots := s.slotsBetween(h.first.Add(-time.Millisecond), h.slot)
			if len(slots) != h.count || !slots[0].Equal(h.first) || !slots[len(slots)-1].Equal(h.slot) {
				wrong = append(wrong, fmt.Sprintf("%s: the history says that %d slots were missed (%s) from %s to %s, where the schedule has %d",
					s.name, h.count, h.reason, slotTime(h.first), slotTime(h.slot), len(slots)))
			}
			for _, at := range slots {
				if other, twice := missed[at.UnixMilli()]; twice {
					wrong = append(wrong, fmt.Sprintf("%s: slot %s is missed twice: %s and %s", s.name, slotTime(at), other, h.reason))
				}
				missed[at.UnixMilli()] = h.reason
			}
		}
		for _, at := range s.slotsBetween(e.from, e.until) {
			ms := at.UnixMilli()
			reason, gone := missed[ms]
			switch {
			case gone && started[ms]:
				wrong = append(wrong, fmt.Sprintf("%s: slot %s was started, and the history says that it was missed: %s", s.name, slotTime(at), reason))
			case gone && claimed[ms]:
				wrong = append(wrong, fmt.Sprintf("%s: slot %s is told twice: of a run, and as missed: %s", s.name, slotTime(at), reason))
			case !gone && !started[ms] && !claimed[ms]:
				wrong = append(wrong, fmt.Sprintf("%s: slot %s was not started, and the history does not say why", s.name, slotTime(at)))
			}
		}
	}
	return wrong
}

// caughtUp: the slot that was the latest when a term began is not forgotten.
func caughtUp(e evidence) (wrong []string) {
	for _, s := range e.jobs {
		runs, entries := e.of(s.name)
		if s.catchUp == "all" {
			for _, h := range entries {
				if h.missed() && h.count > 0 && !(h.reason == "overlap" && h.count == 1 && busy(runs, h.slot, e.patience)) {
					wrong = append(wrong, fmt.Sprintf("%s: it catches up on all slots, and %d were missed up to %s: %s", s.name, h.count, slotTime(h.slot), h.reason))
				}
			}
		}
		if s.catchUp != "latest" {
			continue
		}
		for i, t := range e.terms {
			if t.lock != s.lock {
				continue
			}
			end := e.until
			if !t.stopped.IsZero() {
				end = t.stopped
			}
			for _, next := range e.terms[i+1:] {
				if next.lock == t.lock && next.won.Before(end) {
					end = next.won
				}
			}
			wrong = append(wrong, s.caughtUp(t, end, runs, entries, e)...)
		}
	}
	return wrong
}

// busy reports whether an earlier slot was run again, after a loss, when a slot came. Such a run may begin just before the next slot.
// Its command starts within patience after its claim.
func busy(runs []run, slot time.Time, patience time.Duration) bool {
	return slices.ContainsFunc(runs, func(r run) bool {
		return r.trigger == "retry" && r.slot.Before(slot) && !r.at.After(slot.Add(patience)) && slot.Before(r.at.Add(r.alive-r.began))
	})
}

// caughtUp looks at one term, up to its end: nothing is asked of one that was disturbed.
func (s spec) caughtUp(t term, end time.Time, runs []run, entries []entry, e evidence) []string {
	latest := s.latest(t.won)
	patience := e.patienceFor(t.won)
	begun := t.won.Add(patience + s.jitter)
	if !latest.After(e.from) || !e.calm(span{t.won, begun}, end) || s.deadline > 0 && begun.Sub(latest) > s.deadline {
		return nil
	}
	since := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.slot.Before(latest) || r.at.After(begun) })
	// A leader that is killed between its claim and the command's start leaves a run that is
	// lost: the price of at most once.
	lost := !s.rerun && slices.ContainsFunc(entries, func(h entry) bool { return h.state == "lost" && h.slot.Equal(latest) })
	if len(since) == 0 && !lost {
		return []string{fmt.Sprintf("%s: %s took over at %s (epoch %d), and slot %s, the latest one, was not caught up on",
			s.name, t.node, slotTime(t.won), t.epoch, slotTime(latest))}
	}
	finished := slices.ContainsFunc(since, func(r run) bool { return r.ended && r.code != 143 })
	if s.rerun && !finished && e.calm(span{t.won, begun.Add(s.lasts + patience)}, end) {
		return []string{fmt.Sprintf("%s: %s took over at %s (epoch %d), and slot %s, the latest one, did not run to its end; last was %v",
			s.name, t.node, slotTime(t.won), t.epoch, slotTime(latest), since[len(since)-1])}
	}
	return nil
}

// calm says whether nothing was broken within a span, and it was over by end.
func (e evidence) calm(s span, end time.Time) bool {
	return !s.to.After(end) && !slices.ContainsFunc(e.broken, s.meets)
}

// inItsTerm: no process of a term lives when a later term of its lock starts anything.
func inItsTerm(e evidence) (wrong []string) {
	byLock := map[string][]run{}
	for _, r := range e.runs {
		byLock[r.lock] = append(byLock[r.lock], r)
	}
	for _, runs := range byLock {
		slices.SortStableFunc(runs, func(a, b run) int { return int(a.epoch - b.epoch) })
		var last run // the longest to live of all earlier epochs
		for from := 0; from < len(runs); {
			to := from
			first, longest := runs[from], runs[from]
			for ; to < len(runs) && runs[to].epoch == runs[from].epoch; to++ {
				if runs[to].began < first.began {
					first = runs[to]
				}
				if runs[to].alive > longest.alive {
					longest = runs[to]
				}
			}
			if from > 0 && last.alive >= first.began {
				wrong = append(wrong, fmt.Sprintf("%s: %v lived for %v beside %s: %v", last.job, last, last.alive-first.began, first.job, first))
			}
			if longest.alive > last.alive {
				last = longest
			}
			from = to
		}
	}
	return wrong
}

// alone: runs of a job go on one after the other, unless it allows more.
func alone(e evidence) (wrong []string) {
	for _, s := range e.jobs {
		if s.overlap == "allow" {
			continue
		}
		runs, _ := e.of(s.name)
		var last run
		for i, r := range runs {
			if i > 0 && last.alive >= r.began {
				wrong = append(wrong, fmt.Sprintf("%s: two runs at a time, for %v: %v and %v", s.name, last.alive-r.began, last, r))
			}
			if r.alive > last.alive {
				last = r
			}
		}
	}
	return wrong
}

// truthful: the history has every run, and what it says of a run is so.
func truthful(e evidence) (wrong []string) {
	told, ran := map[string]entry{}, map[string]run{}
	for _, r := range e.runs {
		ran[r.id] = r
	}
	for _, h := range e.entries {
		if h.missed() {
			continue
		}
		r, found := ran[h.id]
		// A run that was told lost may tell of its end after all: the last word counts.
		told[h.id] = h
		switch {
		case !found && (h.state == "succeeded" || h.state == "timed_out"):
			wrong = append(wrong, fmt.Sprintf("%s: the history says that run %s of slot %s has %s, and it never began", h.job, h.id, slotTime(h.slot), h.state))
		case found && h.state == "succeeded" && (!r.ended || r.code != 0):
			wrong = append(wrong, fmt.Sprintf("%s: the history says that it succeeded, and it did not: %v", h.job, r))
		case found && (!r.slot.Equal(h.slot) || r.attempt != h.attempt):
			wrong = append(wrong, fmt.Sprintf("%s: the history has slot %s, attempt %d of what wrote down slot %s: %v", h.job, slotTime(h.slot), h.attempt, slotTime(r.slot), r))
		}
	}
	for _, r := range e.runs {
		if _, found := told[r.id]; !found && !r.at.After(e.until) {
			wrong = append(wrong, fmt.Sprintf("%s: slot %s was started, and the history does not know it: %v", r.job, slotTime(r.slot), r))
		}
	}
	return wrong
}
