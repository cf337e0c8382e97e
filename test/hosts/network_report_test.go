package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// tally is what is told of one sort of fault.
type tally struct {
	name                              string
	times, packets, moved             int
	lasted, without, back             time.Duration
	lost, twice                       int64
	slots, started, missed, slotTwice int
}

// report tells, fault by fault, what it meant.
func (w *wire) report(e evidence) {
	var order []string
	all := map[string]*tally{}
	backs := map[time.Time]time.Duration{}
	for _, r := range e.recoveries() {
		backs[r.after.ended] = r.lead
	}
	// What was written before the first fault is its own line.
	names := []string{"(before)"}
	spans := [][2]time.Time{{e.from, e.until}}
	for i, s := range e.strikes {
		spans[i][1] = s.begun
		names, spans = append(names, s.name), append(spans, [2]time.Time{s.begun, e.until})
	}
	for i, name := range names {
		t := all[name]
		if t == nil {
			t = &tally{name: name}
			all[name] = t
			order = append(order, name)
		}
		t.times++
		if i > 0 {
			s := e.strikes[i-1]
			t.lasted += s.lasted()
			t.packets += s.bitten
			t.back = max(t.back, backs[s.ended])
		}
		t.without += e.leaderless(spans[i][0], spans[i][1])
		t.moved += e.moved(spans[i][0], spans[i][1])
		for _, table := range tables {
			lost, twice := e.difference(table, fmt.Sprintf("%03d-", i))
			t.lost, t.twice = t.lost+lost, t.twice+twice
		}
		e.countSlots(t, spans[i][0], spans[i][1])
	}
	sum := tally{name: "sum"}
	note("network: %-32s %5s %8s %8s %6s %8s %8s %6s %6s %14s %6s", "fault", "times", "lasted", "packets", "moves", "without", "back", "lost", "twice", "slots=run+not", "twice")
	for _, name := range order {
		t := all[name]
		t.tell()
		sum.times, sum.packets, sum.moved = sum.times+t.times, sum.packets+t.packets, sum.moved+t.moved
		sum.lasted, sum.without, sum.back = sum.lasted+t.lasted, sum.without+t.without, max(sum.back, t.back)
		sum.lost, sum.twice = sum.lost+t.lost, sum.twice+t.twice
		sum.slots, sum.started, sum.missed, sum.slotTwice = sum.slots+t.slots, sum.started+t.started, sum.missed+t.missed, sum.slotTwice+t.slotTwice
	}
	sum.tell()
	note("network: %d commands, %d and %d terms of the two locks, %d takings of fences, %d transactions; a lease is %v",
		len(e.acts), e.terms(lockKey), e.terms(eastLock), len(e.took), len(e.wrote["articles"])+len(e.wrote["orders"])+len(e.wrote["visits"]), lease)
	if all := e.successions(); len(all) > 0 {
		closest := slices.MinFunc(all, func(a, b succession) int { return cmp.Compare(a.apart(), b.apart()) })
		note("network: %d successions; from the last sign of life of a term to the first of the next at least %v", len(all), round(closest.apart()))
	}
}

func (t tally) tell() {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }
	note("network: %-32s %5d %8s %8d %6d %8s %8s %6d %6d %14s %6d", t.name, t.times, seconds(t.lasted), t.packets, t.moved, seconds(t.without), seconds(t.back),
		t.lost, t.twice, fmt.Sprintf("%d=%d+%d", t.slots, t.started, t.missed), t.slotTwice)
}

// moved counts the terms that began in some time.
func (e evidence) moved(from, to time.Time) (n int) {
	for _, a := range e.acts {
		if a.job == "pulse" && a.attempt == "1" && !a.began.Before(from) && a.began.Before(to) {
			n++
		}
	}
	return n
}

func (e evidence) countSlots(t *tally, from, to time.Time) {
	for _, job := range []string{"tick", "other"} {
		s := e.slots(job)
		for slot := from.Unix() + 1; slot <= to.Unix(); slot++ {
			t.slots++
			switch n := len(s.runs[slot]); {
			case n > 1:
				t.slotTwice++
				fallthrough
			case n == 1:
				t.started++
			default:
				t.missed++
			}
		}
	}
}
