package hosts

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Any stands for every machine, in place of a name.
const Any = "*"

// Way is what happens to what one machine sends to another. The zero value is a good
// network.
type Way struct {
	// Delay is added to every packet, and up to Jitter more. Packets stay in order.
	Delay, Jitter time.Duration
	// Loss is the share of packets that get lost, from 0 to 1.
	Loss float64
	// Blocked packets are dropped without a word, as by a firewall.
	Blocked bool
}

// Network is what connects the machines of a lab. Faults hold until healed. Address
// resolution passes wherever a cable is in: a partition is one behind a router.
type Network struct {
	mu        sync.Mutex
	ways      map[[2]string]Way
	unplugged map[string]bool
	ports     map[string]*port
	learnt    map[mac]*port
	random    *rand.Rand // guarded by mu
	traffic   map[[2]string]*Traffic
}

// Traffic is what has become of the packets from one machine to another.
type Traffic struct{ Passed, Delayed, Dropped int }

func newNetwork() *Network {
	return &Network{
		ways: map[[2]string]Way{}, unplugged: map[string]bool{}, ports: map[string]*port{}, learnt: map[mac]*port{},
		traffic: map[[2]string]*Traffic{}, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
}

// Set makes the way from one machine to another as told. Any is every machine; a
// rule that names both goes over one that names the sender, and that one over one
// that names the receiver.
func (n *Network) Set(from, to string, w Way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ways[[2]string{from, to}] = w
}

// change edits the rule of a way.
func (n *Network) change(from, to string, edit func(*Way)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.ways[[2]string{from, to}]
	edit(&w)
	n.ways[[2]string{from, to}] = w
}

// Block drops everything between two machines.
func (n *Network) Block(a, b string) { n.OneWay(a, b); n.OneWay(b, a) }

// OneWay drops everything from one machine to another; the other way works.
func (n *Network) OneWay(from, to string) { n.change(from, to, func(w *Way) { w.Blocked = true }) }

// Delay adds a delay, and up to jitter more, each way between two machines.
func (n *Network) Delay(a, b string, delay, jitter time.Duration) {
	set := func(w *Way) { w.Delay, w.Jitter = delay, jitter }
	n.change(a, b, set)
	n.change(b, a, set)
}

// Loss loses a share of the packets each way between two machines.
func (n *Network) Loss(a, b string, share float64) {
	set := func(w *Way) { w.Loss = share }
	n.change(a, b, set)
	n.change(b, a, set)
}

// Unplug takes the cable out: the machine sees that it has no carrier.
func (n *Network) Unplug(machine string) { n.plug(machine, false) }

// Plug puts the cable in again.
func (n *Network) Plug(machine string) { n.plug(machine, true) }

func (n *Network) plug(machine string, in bool) {
	n.mu.Lock()
	n.unplugged[machine] = !in
	p := n.ports[machine]
	n.mu.Unlock()
	if p != nil {
		p.carrier(in)
	}
}

// Heal makes everything between the machines named good again, cables included;
// without names, everything.
func (n *Network) Heal(machines ...string) {
	named := map[string]bool{}
	for _, m := range machines {
		named[m] = true
	}
	var replug []string
	n.mu.Lock()
	for way := range n.ways {
		if len(machines) == 0 || named[way[0]] || named[way[1]] {
			delete(n.ways, way)
		}
	}
	for m, out := range n.unplugged {
		if out && (len(machines) == 0 || named[m]) {
			replug = append(replug, m)
		}
	}
	n.mu.Unlock()
	for _, m := range replug {
		n.Plug(m)
	}
}

// fate is whether a packet passes, and when it arrives.
func (n *Network) fate(from, to string, resolution bool, now time.Time) (at time.Time, passes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.traffic[[2]string{from, to}]
	if t == nil {
		t = &Traffic{}
		n.traffic[[2]string{from, to}] = t
	}
	at, passes = n.arrival(from, to, resolution, now)
	switch {
	case !passes:
		t.Dropped++
	case at.After(now):
		t.Delayed++
	default:
		t.Passed++
	}
	return at, passes
}

func (n *Network) arrival(from, to string, resolution bool, now time.Time) (at time.Time, passes bool) {
	w := n.way(from, to)
	switch {
	case n.unplugged[from] || n.unplugged[to]:
		return now, false
	case resolution:
		return now, true
	case w.Blocked, w.Loss > 0 && n.random.Float64() < w.Loss:
		return now, false
	}
	at = now.Add(w.Delay)
	if w.Jitter > 0 {
		at = at.Add(time.Duration(n.random.Float64() * float64(w.Jitter)))
	}
	return at, true
}

// Traffic counts the packets from one machine to another since the lab began.
func (n *Network) Traffic(from, to string) Traffic {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.traffic[[2]string{from, to}]; t != nil {
		return *t
	}
	return Traffic{}
}

// way is the rule that holds; the caller has the lock.
func (n *Network) way(from, to string) Way {
	for _, key := range [][2]string{{from, to}, {from, Any}, {Any, to}, {Any, Any}} {
		if w, ok := n.ways[key]; ok {
			return w
		}
	}
	return Way{}
}
