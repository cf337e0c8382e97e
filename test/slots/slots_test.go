package slots

import (
	"context"
	"fmt"
	"os/exec"
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
	probes := func() []probe { return nil }
	if !strict { // other tests share the machine
		e.patience += lease
		probes = l.probe()
	}
	l.nemesis.Rest(1500 * time.Millisecond)
	l.nemesis.Rage(nemesis.Draw(seed, faults, traits(), pace()))
	l.nemesis.Rest(calm)
	e.until = time.Now().Add(-calm / 2)
	l.settle(e)
	l.retire()
	l.background.Wait()
	e.probes = probes()
	if err := l.gather(&e); err != nil {
		l.Wrong("%v", err)
	}
	wrongs := judge(e)
	l.report(e, wrongs)
	for _, w := range wrongs {
		l.Wrong("%s", w)
	}
	l.sawEnough(e, faults)
	l.Keep(t, "slots", seed, l.evidence)
}

// settle waits until every slot is accounted for, but not for ever: whoever judges then says
// which one is not. A machine that other tests share may not have started all of them yet.
func (l *lab) settle(e evidence) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); l.nemesis.Rest(time.Second) {
		now := e
		if l.gather(&now) == nil && len(accounted(now)) == 0 {
			return
		}
	}
}

// probe notes again and again what it takes to start a process. The function that it returns
// ends that.
func (l *lab) probe() (end func() []probe) {
	ctx, stop := context.WithCancel(l.t.Context())
	noted := make(chan []probe, 1)
	go func() {
		var all []probe
		for ctx.Err() == nil {
			began := time.Now()
			_ = exec.CommandContext(ctx, l.work).Run() // without arguments it fails at once
			all = append(all, probe{began, time.Since(began)})
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
		noted <- all
	}()
	return func() []probe { stop(); return <-noted }
}

// gather reads what was written down.
func (l *lab) gather(e *evidence) (err error) {
	if e.runs, err = readStarts(l.file); err != nil {
		return fmt.Errorf("what the commands wrote cannot be read: %w", err)
	}
	for _, s := range l.jobs {
		entries, err := l.history(s)
		if err != nil {
			return err
		}
		e.entries = append(e.entries, entries...)
	}
	e.terms = l.terms()
	for _, s := range l.nemesis.Strikes {
		e.broken = append(e.broken, span{s.Begun, s.Ended.Add(time.Second)}) // what it broke is restarted by then
	}
	return nil
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
