package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge holds the evidence against the promises 1 to 5, in their order.
func (e evidence) judge(slack time.Duration) []string {
	return slices.Concat(e.apart(), e.deposed(), e.exact(), e.once(), e.led(slack))
}

// deed is what somebody did under an epoch.
type deed struct {
	epoch        int64
	began, alive time.Time
	what         string
}

// succession is two terms of a lock, one after the other.
type succession struct {
	lock        string
	last, first deed // the longest to live of all before, the first of the next
}

func (s succession) apart() time.Duration { return s.first.began.Sub(s.last.alive) }

// apart, promise 1: no process of a term lives when a later term of its lock does
// anything, which is to start a command or to take a fence.
func (e evidence) apart() (wrong []string) {
	for _, s := range e.successions() {
		if s.apart() <= 0 {
			wrong = append(wrong, fmt.Sprintf("promise 1, lock %s: %s lived for %v beside %s", s.lock, s.last.what, -s.apart(), s.first.what))
		}
	}
	return wrong
}

func (e evidence) successions() (all []succession) {
	locks := map[string][]deed{}
	for _, a := range e.acts {
		locks[a.lock] = append(locks[a.lock], deed{a.epoch, a.began, a.alive, a.String()})
	}
	for _, f := range e.took {
		locks[lockKey] = append(locks[lockKey], deed{f.epoch, f.at, f.at, fmt.Sprintf("the fence of %s taken by %s in epoch %d", f.job, f.host, f.epoch)})
	}
	for lock, deeds := range locks {
		slices.SortStableFunc(deeds, func(a, b deed) int {
			return cmp.Or(cmp.Compare(a.epoch, b.epoch), a.began.Compare(b.began))
		})
		var last deed // the longest to live of all earlier epochs
		for len(deeds) > 0 {
			term := deeds
			if i := slices.IndexFunc(deeds, func(d deed) bool { return d.epoch != deeds[0].epoch }); i > 0 {
				term = deeds[:i]
			}
			deeds = deeds[len(term):]
			if last.what != "" {
				all = append(all, succession{lock, last, term[0]})
			}
			for _, d := range term {
				if d.alive.After(last.alive) {
					last = d
				}
			}
		}
	}
	return all
}

// deposed, promise 2: who commits rows is who has the fence at that moment, and epochs of
// fences rise.
func (e evidence) deposed() (wrong []string) {
	for _, job := range tables {
		var took []taking
		for _, f := range e.took {
			if f.job == job {
				if n := len(took); n > 0 && f.epoch <= took[n-1].epoch {
					wrong = append(wrong, fmt.Sprintf("promise 2: the fence of %s went from epoch %d to %d of %s", job, took[n-1].epoch, f.epoch, f.host))
				}
				took = append(took, f)
			}
		}
		for _, w := range e.wrote[job] {
			i, _ := slices.BinarySearchFunc(took, w.at, func(f taking, at time.Time) int {
				if f.at.After(at) {
					return 1
				}
				return -1
			})
			switch {
			case i == 0:
				wrong = append(wrong, fmt.Sprintf("promise 2: %s wrote to %s at %s, before anybody had its fence", w.host, job, clock(w.at)))
			case took[i-1].host != w.host:
				wrong = append(wrong, fmt.Sprintf("promise 2: %s wrote to %s at %s, and %s had taken its fence %v before (epoch %d)",
					w.host, job, clock(w.at), took[i-1].host, w.at.Sub(took[i-1].at), took[i-1].epoch))
			}
		}
	}
	return wrong
}

// exact, promise 3: what is in the database is what was acknowledged.
func (e evidence) exact() (wrong []string) {
	for _, table := range tables {
		lost, twice := e.difference(table, "")
		if lost+twice > 0 {
			wrong = append(wrong, fmt.Sprintf("promise 3: %s: %d lost, %d twice", table, lost, twice))
		}
	}
	for _, d := range e.dead {
		wrong = append(wrong, "promise 3: dead letter of "+d)
	}
	return wrong
}

// difference counts what is missing and what is too much of the keys that begin so.
func (e evidence) difference(table, prefix string) (lost, twice int64) {
	for id, n := range e.want[table] {
		if strings.HasPrefix(id, prefix) {
			lost += max(n-e.got[table][id], 0)
			twice += max(e.got[table][id]-n, 0)
		}
	}
	for id, n := range e.got[table] {
		if _, known := e.want[table][id]; !known && strings.HasPrefix(id, prefix) {
			twice += n
		}
	}
	return lost, twice
}

// once, promise 4: a slot starts once at most, and what becomes of each is told: it was
// started, claimed by a run that came to nothing, or missed for a reason.
func (e evidence) once() (wrong []string) {
	for _, job := range []string{"tick", "other"} {
		s := e.slots(job)
		for slot, runs := range s.runs {
			if len(runs) > 1 {
				wrong = append(wrong, fmt.Sprintf("promise 4: slot %s of %s was started %d times: %v", clock(time.Unix(slot, 0)), job, len(runs), runs))
			}
		}
		for slot := e.from.Unix() + 1; slot <= e.until.Unix(); slot++ {
			reason, missed := s.missed[slot]
			switch started := len(s.runs[slot]) > 0; {
			case missed && started:
				wrong = append(wrong, fmt.Sprintf("promise 4: slot %s of %s was started, and the history says that it was missed: %s", clock(time.Unix(slot, 0)), job, reason))
			case started && s.claimed[slot] == "":
				wrong = append(wrong, fmt.Sprintf("promise 4: slot %s of %s was started, and the history does not know it: %v", clock(time.Unix(slot, 0)), job, s.runs[slot]))
			case !missed && !started && s.claimed[slot] == "":
				wrong = append(wrong, fmt.Sprintf("promise 4: slot %s of %s was not started, and the history does not say why", clock(time.Unix(slot, 0)), job))
			}
		}
	}
	return wrong
}

// slots are what became of each slot of a job, by its second.
type slots struct {
	runs    map[int64][]act
	claimed map[int64]string // the state of its run
	missed  map[int64]string // the reason
}

func (e evidence) slots(job string) slots {
	s := slots{runs: map[int64][]act{}, claimed: map[int64]string{}, missed: map[int64]string{}}
	for _, a := range e.acts {
		if a.job == job {
			s.runs[a.slot.Unix()] = append(s.runs[a.slot.Unix()], a)
		}
	}
	for _, h := range e.entries {
		switch {
		case h.job != job:
		case h.count == 0:
			s.claimed[h.slot.Unix()] = h.state
		default:
			for slot := h.first.Unix(); slot <= h.slot.Unix(); slot++ {
				s.missed[slot] = h.reason
			}
		}
	}
	return s
}

// recovery is what followed the end of the last fault of some.
type recovery struct {
	after strike
	until time.Time     // when the next began
	lead  time.Duration // until a leader acted; negative: not before the next
}

// recoveries finds the moments at which nothing was broken any more, and measures.
func (e evidence) recoveries() []recovery {
	var all []recovery
	pulse := e.pulse()
	for _, s := range e.strikes {
		r, alone := recovery{after: s, until: e.until, lead: -1}, true
		for _, o := range e.strikes {
			if o.begun.After(s.ended) && o.begun.Before(r.until) {
				r.until = o.begun
			}
			alone = alone && (o.begun.After(s.ended) || !o.ended.After(s.ended))
		}
		if !alone {
			continue
		}
		if i, _ := slices.BinarySearchFunc(pulse, s.ended, time.Time.Compare); i < len(pulse) && !pulse[i].After(r.until) {
			r.lead = pulse[i].Sub(s.ended)
		}
		all = append(all, r)
	}
	return all
}

// led, promise 5: one node leads within one lease.
func (e evidence) led(slack time.Duration) (wrong []string) {
	for _, r := range e.recoveries() {
		took := r.lead
		if took < 0 {
			took = r.until.Sub(r.after.ended)
		}
		if took > lease+slack {
			wrong = append(wrong, fmt.Sprintf("promise 5: for %v after %s of %s had ended at %s nobody acted as leader; the limit is %v",
				round(took), r.after.name, r.after.target, clock(r.after.ended), lease+slack))
		}
	}
	return wrong
}

// leaderless is for how long nobody acted as leader in some time.
func (e evidence) leaderless(from, to time.Time) (total time.Duration) {
	const stall = 100 * time.Millisecond // a busy machine's, not an absence
	last := from
	for _, at := range append(e.pulse(), to) {
		if at.Before(from) {
			continue
		}
		if at.After(to) {
			at = to
		}
		if gap := at.Sub(last); gap > stall {
			total += gap
		}
		last = at
	}
	return total
}
