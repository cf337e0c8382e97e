package hosts

import (
	"fmt"
	"testing"
	"time"

	"baton/internal/testsupport/nemesis"
)

// lease is the ttl of the hosts whose network is broken: short, so that rounds are.
const lease = 2 * time.Second

// The promises of DESIGN.md hold whatever the network does. Three hosts run jobs of every
// sort while their ways to Redis and to the database are cut, one way and both ways,
// delayed, lossy, and come and go. Afterwards it is compared what was written, what came
// into the database and from whom, and what commands have written down.
//
// Each fault of a list strikes once; with $CHAOS_FAULTS so many are drawn from
// $CHAOS_SEED, of which some overlap.
func TestNetworkFaultsBreakNoPromise(t *testing.T) {
	faults, seed, random := nemesis.Asked(t, 0)
	w := newWire(t)
	stop := w.writing()
	began := time.Now()
	if random {
		fmt.Printf("network: %d faults with CHAOS_SEED=%d\n", faults, seed)
		w.drawn(seed, faults)
	} else {
		w.listed()
	}
	w.calm(2 * time.Second)
	ended := time.Now()
	stop()
	e := w.gather(began, ended)
	w.report(e)
	slack := 500 * time.Millisecond // for cores that others need, too
	if load(t) > tooMuch() {
		slack = lease
	}
	w.check(e.judge(slack))
	w.check(w.sawEnough(e, random))
	w.keep(seed, random)
}

// listed strikes with each fault of the list, and waits for a leader after each.
func (w *wire) listed() {
	for i, f := range listed {
		w.t.Logf("%2d %v", i, f)
		w.strike(f)
	}
}

// committing counts transactions that have written to orders and asked for their fence: the
// next that the database hears of them is COMMIT.
const committing = `SELECT count(*)::text FROM pg_stat_activity a JOIN pg_locks l USING (pid)
	WHERE l.relation = 'orders'::regclass AND l.mode = 'RowExclusiveLock' AND a.state = 'idle in transaction' AND a.query LIKE '%SELECT epoch, owner, lease_ms FROM%'`

// strike is one fault of the list from its beginning to a leader after its end.
func (w *wire) strike(f fault) {
	if f.beneath != "" {
		// Over a slow way a connection takes longer than the lease leaves for it, so the
		// leader must have those that it needs, after the fault before.
		w.flows()
		i := w.begin(fault{kind: kindOf(f.beneath)}, "")
		defer w.end(i)
		w.Await("a transaction that is about to be committed", func() bool { return w.db.Rows(committing)[0] != "0" })
	}
	old := w.leader()
	w.begin(f, old)
	w.calm(f.lasts)
	if f.moves {
		w.awaitLead("another host to lead during "+f.kind.name, func(now string) bool { return now != "" && now != old })
	}
	w.end(len(w.strikes) - 1)
	w.awaitLead("a leader after "+f.kind.name, func(now string) bool { return now != "" })
	w.calm(500 * time.Millisecond)
}

// flows waits until orders arrive in the database, and again after that.
func (w *wire) flows() {
	const count = "SELECT count(*)::text FROM orders"
	for range 2 {
		before := w.db.Rows(count)[0]
		w.Await("orders to arrive", func() bool { return w.db.Rows(count)[0] != before })
	}
}

// awaitLead waits for who leads as Redis has it; twice the time that it may take.
func (w *wire) awaitLead(what string, ok func(string) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(4 * lease); !ok(w.leader()); w.tick() {
		if time.Now().After(deadline) {
			w.wrong("waited %v in vain for %s", 4*lease, what)
			return
		}
	}
}

// calm lets time pass.
func (w *wire) calm(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		w.tick()
	}
}

// drawn strikes at random.
func (w *wire) drawn(seed uint64, faults int) {
	var traits []nemesis.Trait
	for _, k := range kinds {
		if k.weight > 0 {
			traits = append(traits, nemesis.Trait{Kind: k.name, Place: k.place, Weight: k.weight, Least: k.least, Longest: k.longest})
		}
	}
	n := &nemesis.Nemesis{Log: w.log, Tick: w.tick, Begin: func(f nemesis.Fault) (string, func()) {
		target := w.leader()
		if f.Draw%4 == 0 || target == "" {
			target = w.hosts[f.Draw/4%uint64(len(w.hosts))].Name
		}
		i := w.begin(fault{kind: kindOf(f.Kind), lasts: f.Lasts}, target)
		return target, func() { w.end(i) }
	}}
	n.Rage(nemesis.Draw(seed, faults, traits, nemesis.Pace{
		Least: 300 * time.Millisecond, Most: 3 * time.Second, Quiet: lease + 1500*time.Millisecond, Each: 3500 * time.Millisecond,
	}))
}

// sawEnough makes sure that the test was one.
func (w *wire) sawEnough(e evidence, random bool) (wrong []string) {
	hurt, missed := 0, []string{}
	for _, s := range w.strikes {
		switch {
		case !s.hurts(s.lasted()):
		case s.bitten == 0:
			missed = append(missed, fmt.Sprintf("%s of %s has met no packet", s.name, s.target))
		default:
			hurt++
		}
	}
	// At random some hit a host that stands by, or one that says nothing for another fault.
	if !random || hurt < 2*len(missed) {
		wrong = append(wrong, missed...)
	}
	least := len(w.strikes) / 3
	if random {
		least = len(w.strikes) / 6
	}
	if terms := e.terms(lockKey); terms < least {
		wrong = append(wrong, fmt.Sprintf("there were %d terms only: %d faults should meet %d at least", terms, len(w.strikes), least))
	}
	for _, table := range tables {
		if n := len(e.wrote[table]); n < 2*len(w.strikes) {
			wrong = append(wrong, fmt.Sprintf("%d transactions have written to %s only", n, table))
		}
	}
	return wrong
}
