package slots

import (
	"fmt"
	"testing"
	"time"

	"baton/internal/testsupport/nemesis"
)

// ordinary is how many faults there are in an ordinary test run; CHAOS_FAULTS asks for more.
const ordinary = 8

// calm is how long nothing is broken in the end, so that everything can be dealt with.
const calm = 2*lease + 3*time.Second

// A slot starts once at most and none is forgotten, whatever is killed, frozen, restarted,
// cut or told.
func TestSlots(t *testing.T) {
	faults, seed, strict := nemesis.Asked(t, ordinary)
	if !strict {
		t.Parallel()
	}
	fmt.Printf("slots: %d faults with CHAOS_SEED=%d\n", faults, seed)
	l := newLab(t)
	e := evidence{jobs: l.jobs, from: time.Now().Add(time.Second), patience: 1500 * time.Millisecond}
	if !strict {
		e.patience += lease // other tests share the machine
	}
	l.nemesis.Rest(1500 * time.Millisecond)
	l.nemesis.Rage(nemesis.Draw(seed, faults, traits(), pace()))
	l.nemesis.Rest(calm)
	e.until = time.Now().Add(-calm / 2)
	l.retire()
	l.background.Wait()
	l.gather(&e)
	wrongs := judge(e)
	l.report(e, wrongs)
	for _, w := range wrongs {
		l.Wrong("%s", w)
	}
	l.sawEnough(e, faults)
	l.Keep(t, "slots", seed, l.evidence)
}

// gather reads what was written down.
func (l *lab) gather(e *evidence) {
	var err error
	if e.runs, err = readStarts(l.file); err != nil {
		l.Wrong("what the commands wrote cannot be read: %v", err)
	}
	for _, s := range l.jobs {
		entries, err := l.history(s)
		if err != nil {
			l.Wrong("%v", err)
		}
		e.entries = append(e.entries, entries...)
	}
	e.terms = l.terms()
	for _, s := range l.nemesis.Strikes {
		e.broken = append(e.broken, span{s.Begun, s.Ended.Add(time.Second)}) // what it broke is restarted by then
	}
}

// sawEnough makes sure that the test was one.
func (l *lab) sawEnough(e evidence, faults int) {
	if least := faults / 4; len(e.terms) < least {
		l.Wrong("there were %d terms only: %d faults should meet %d at least", len(e.terms), faults, least)
	}
	for _, s := range l.jobs {
		if runs, _ := e.of(s.name); len(runs) == 0 && s.every < time.Minute {
			l.Wrong("%s was never started", s.name)
		}
	}
}
