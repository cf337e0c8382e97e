package hosts

import (
	"fmt"
	"time"

	lab "baton/internal/testsupport/hosts"
)

// kind is one sort of fault: what happens to what a host sends to its peers, and to what
// it gets from them.
type kind struct {
	name  string
	peers []string // machines: redis, db
	all   bool     // it hits every host, not one
	out   lab.Way
	in    lab.Way
	flaps time.Duration // it comes and goes, for so long each

	// Of a random schedule.
	weight         int
	place          string
	least, longest time.Duration
}

// fault is an entry of the list.
type fault struct {
	kind
	lasts time.Duration
	moves bool // the host that it hits cannot stay the leader
	// beneath names a kind that begins before and ends after: it makes the database slow,
	// so that the fault can strike amid a transaction.
	beneath string
}

func (f fault) String() string { return fmt.Sprintf("%s for %v", f.name, f.lasts) }

const ms = time.Millisecond

var (
	cut     = lab.Way{Blocked: true}
	toRedis = []string{"redis"}
	toDB    = []string{"db"}
	toBoth  = []string{"redis", "db"}
)

// kinds are all sorts.
var kinds = []kind{
	{name: "leader | Redis", peers: toRedis, out: cut, in: cut, weight: 4, place: "redis", least: 100 * ms, longest: 3 * lease},
	{name: "leader → Redis", peers: toRedis, out: cut, weight: 4, place: "redis", least: 100 * ms, longest: 3 * lease},
	{name: "leader ← Redis", peers: toRedis, in: cut, weight: 4, place: "redis", least: 100 * ms, longest: 3 * lease},
	{name: "leader | database", peers: toDB, out: cut, in: cut, weight: 3, place: "db", least: 100 * ms, longest: 3 * lease},
	{name: "leader → database", peers: toDB, out: cut, weight: 3, place: "db", least: 100 * ms, longest: 3 * lease},
	{name: "leader ← database", peers: toDB, in: cut, weight: 3, place: "db", least: 100 * ms, longest: 3 * lease},
	{name: "leader isolated", peers: toBoth, out: cut, in: cut, weight: 3, place: "host", least: 100 * ms, longest: 3 * lease},
	{name: "all | Redis", peers: toRedis, all: true, out: cut, in: cut, weight: 2, place: "redis", least: 100 * ms, longest: 3 * lease},
	{name: "all | database", peers: toDB, all: true, out: cut, in: cut, weight: 2, place: "db", least: 100 * ms, longest: 3 * lease},
	{name: "database: 200 ms there and back", peers: toDB, all: true, out: lab.Way{Delay: 100 * ms}, in: lab.Way{Delay: 100 * ms},
		weight: 2, place: "db", least: 500 * ms, longest: 3 * lease},
	{name: "database: 200 ms each way", peers: toDB, all: true, out: lab.Way{Delay: 200 * ms}, in: lab.Way{Delay: 200 * ms},
		weight: 2, place: "db", least: 500 * ms, longest: 3 * lease},
	{name: "all: 200 ms there and back", peers: toBoth, all: true, out: lab.Way{Delay: 100 * ms}, in: lab.Way{Delay: 100 * ms},
		weight: 2, place: "quality", least: 500 * ms, longest: 3 * lease},
	{name: "all: 200 ms each way", peers: toBoth, all: true, out: lab.Way{Delay: 200 * ms}, in: lab.Way{Delay: 200 * ms},
		weight: 2, place: "quality", least: 500 * ms, longest: 3 * lease},
	{name: "all: 0 to 300 ms each way", peers: toBoth, all: true, out: lab.Way{Jitter: 300 * ms}, in: lab.Way{Jitter: 300 * ms},
		weight: 2, place: "quality", least: 500 * ms, longest: 3 * lease},
	{name: "all: loss of 5 %", peers: toBoth, all: true, out: lab.Way{Loss: 0.05}, in: lab.Way{Loss: 0.05},
		weight: 2, place: "quality", least: 500 * ms, longest: 3 * lease},
	{name: "all: loss of 30 %", peers: toBoth, all: true, out: lab.Way{Loss: 0.3}, in: lab.Way{Loss: 0.3},
		weight: 2, place: "quality", least: 500 * ms, longest: 3 * lease},
	{name: "leader flaps", peers: toBoth, out: cut, in: cut, flaps: time.Second, weight: 2, place: "host", least: time.Second, longest: 3 * lease},
}

func kindOf(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic("no fault is called " + name) // a mistake in this file
}

const longer = lease + 600*ms

// listed are those that strike in an ordinary run, one after the other.
var listed = []fault{
	{kind: kindOf("leader | Redis"), lasts: lease / 4},
	{kind: kindOf("leader | Redis"), lasts: longer, moves: true},
	{kind: kindOf("leader → Redis"), lasts: longer, moves: true},
	{kind: kindOf("leader ← Redis"), lasts: longer, moves: true},
	// What the leader commits now it cannot take out of Redis: its successor finds it there.
	{kind: kindOf("leader | Redis"), lasts: longer, moves: true, beneath: "database: 200 ms there and back"},
	{kind: kindOf("leader | database"), lasts: longer},
	{kind: kindOf("leader → database"), lasts: 1500 * ms},
	{kind: kindOf("leader ← database"), lasts: 1500 * ms},
	// Its COMMIT comes late: its kernel sends it again after the end.
	{kind: kindOf("leader isolated"), lasts: longer, moves: true, beneath: "database: 200 ms there and back"},
	{kind: kindOf("all | Redis"), lasts: longer},
	{kind: kindOf("all: 200 ms there and back"), lasts: 2 * time.Second},
	{kind: kindOf("all: 200 ms each way"), lasts: 2 * time.Second},
	{kind: kindOf("all: loss of 30 %"), lasts: 2 * time.Second},
	{kind: kindOf("leader flaps"), lasts: 3 * time.Second},
}

// hurts says whether a fault of this kind that lasts so long is bound to meet a packet.
func (k kind) hurts(lasts time.Duration) bool {
	return lasts >= time.Second && (k.out.Loss == 0 || k.out.Loss > 0.1)
}

// strike is a fault as it was carried out.
type strike struct {
	fault
	target       string
	begun, ended time.Time
	bitten       int // packets that it has dropped or delayed, or others at the same time
	before       int
}

func (s strike) lasted() time.Duration { return s.ended.Sub(s.begun) }

// ways are those that a strike is about.
func (s strike) ways(hosts []*lab.Host) map[[2]string]lab.Way {
	ways := map[[2]string]lab.Way{}
	for _, h := range hosts {
		if h.Name != s.target && !s.all {
			continue
		}
		for _, p := range s.peers {
			ways[[2]string{h.Name, p}], ways[[2]string{p, h.Name}] = s.out, s.in
		}
	}
	return ways
}

// rests says whether one that comes and goes is gone just now.
func (s strike) rests(now time.Time) bool {
	return s.flaps > 0 && now.Sub(s.begun)/s.flaps%2 == 1
}

// begin begins a fault.
func (w *wire) begin(f fault, target string) (i int) {
	s := strike{fault: f, target: target, begun: time.Now()}
	s.before = w.met(s)
	w.strikes = append(w.strikes, s)
	w.struck.Store(int64(len(w.strikes)))
	w.apply()
	w.log.Add("+%v (%s)", f, target)
	return len(w.strikes) - 1
}

// end ends it.
func (w *wire) end(i int) {
	s := &w.strikes[i]
	s.bitten = w.met(*s) - s.before
	s.ended = time.Now()
	w.apply()
	w.log.Add("-%s (%s): %d packets", s.name, s.target, s.bitten)
}

// met counts the packets that did not pass at once on the ways of a strike.
func (w *wire) met(s strike) (n int) {
	for way := range s.ways(w.hosts) {
		t := w.Net.Traffic(way[0], way[1])
		n += t.Dropped + t.Delayed
	}
	return n
}

// apply makes every way as the strikes of this moment together want it.
func (w *wire) apply() {
	now := time.Now()
	ways := map[[2]string]lab.Way{}
	for _, h := range w.hosts {
		for _, p := range toBoth {
			ways[[2]string{h.Name, p}], ways[[2]string{p, h.Name}] = lab.Way{}, lab.Way{}
		}
	}
	for _, s := range w.strikes {
		if !s.ended.IsZero() || s.rests(now) {
			continue
		}
		for key, add := range s.ways(w.hosts) {
			way := ways[key]
			way.Blocked = way.Blocked || add.Blocked
			way.Delay, way.Jitter, way.Loss = max(way.Delay, add.Delay), max(way.Jitter, add.Jitter), max(way.Loss, add.Loss)
			ways[key] = way
		}
	}
	for key, way := range ways {
		w.Net.Set(key[0], key[1], way)
	}
}
