package hosts

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Any stands for every machine, in place of a name.
const Any = "*"

// Way says what happens to packets from one machine to another. The zero value is a network without faults.
type Way struct {
	// Delay is added to the time of every packet, together with a random time up to Jitter. Packets stay in order.
	Delay, Jitter time.Duration
	// Loss is the share of lost packets, from 0 to 1.
	Loss float64
	// Blocked packets are dropped without an answer, as by a firewall.
	Blocked bool
}

// Network connects the machines of a lab. A fault stays until it is healed. Address resolution (ARP) works whenever the cable is plugged
// in, so a partition here is like a partition behind a router.
type Network struct {
	mu        sync.Mutex
	ways      map[[2]string]Way
	unplugged map[string]bool
	ports     map[string]*port
	learnt    map[mac]*port
	random    *rand.Rand // guarded by mu
	traffic   map[[2]string]*Traffic
}

// Traffic counts the packets from one machine to another, by what happened to them.
type Traffic struct{ Passed, Delayed, Dropped int }

func newNetwork() *Network {
	return &Network{
		ways: map[[2]string]Way{}, unplugged: map[string]bool{}, ports: map[string]*port{}, learnt: map[mac]*port{},
		traffic: map[[2]string]*Traffic{}, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
}

// Set sets the rule for packets from one machine to another. Any stands for every machine. A rule that names both machines has priority
// over a rule that names only the sender. A rule that names the sender has priority over a rule that names only the receiver.
func (n *Network) Set(from, to string, w Way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ways[[2]string{from, to}] = w
}

// change edits the rule for packets from one machine to another.
func (n *Network) change(from, to string, edit func(*Way)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.ways[[2]string{from, to}]
	edit(&w)
	n.ways[[2]string{from, to}] = w
}

// Block drops all packets between two machines.
func (n *Network) Block(a, b string) { n.OneWay(a, b); n.OneWay(b, a) }

// OneWay drops all packets from one machine to another; the other direction works.
func (n *Network) OneWay(from, to string) { n.change(from, to, func(w *Way) { w.Blocked = true }) }

// Delay delays the packets between two machines, each way, by delay and a random time up to jitter.
func (n *Network) Delay(a, b string, delay, jitter time.Duration) {
	set := func(w *Way) { w.Delay, w.Jitter = delay, jitter }
	n.change(a, b, set)
	n.change(b, a, set)
}

// Loss drops a share of the packets between two machines, each way.
func (n *Network) Loss(a, b string, share float64) {
	set := func(w *Way) { w.Loss = share }
	n.change(a, b, set)
	n.change(b, a, set)
}

// Unplug removes the cable: the machine sees that it has no carrier.
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

// Heal removes all faults on the ways from or to the named machines, and plugs in their cables. Without names it heals the whole network.
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

// fate decides whether a packet passes, and when it arrives.
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

// Traffic returns the counts of packets from one machine to another since the lab began.
func (n *Network) Traffic(from, to string) Traffic {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.traffic[[2]string{from, to}]; t != nil {
		return *t
	}
	return Traffic{}
}

// way returns the rule that applies to packets from one machine to another. The caller must hold the mutex.
func (n *Network) way(from, to string) Way {
	for _, key := range [][2]string{{from, to}, {from, Any}, {Any, to}, {Any, Any}} {
		if w, ok := n.ways[key]; ok {
			return w
		}
	}
	return Way{}
}
