package balance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// hosts simulates nodes and their locks, as Redis would show them, in steps of one reading.
type hosts struct {
	rng     *rand.Rand
	now     time.Time
	locks   map[string][]string // the locks of each configuration
	up      map[string]*host
	listed  map[string]Node // nodes that Redis lists, also dead ones
	leader  map[string]string
	dead    map[string]time.Time // locks whose leader has died, with the end of the lease
	orders  map[string]string    // the node that gets a lock at the next step
	moves   int
	history []string
}

type host struct {
	id, config string
	priority   int
	watch      memory
	last       *snapshot
	busy       map[string]bool
}

const (
	simLook  = 2 * time.Second
	simLease = 10 * time.Second
	simGone  = time.Minute // time after which a dead node is no longer listed
)

func newHosts(seed uint64, locks map[string][]string) *hosts {
	return &hosts{
		rng: rand.New(rand.NewPCG(seed, 7)), now: time.UnixMilli(1_800_000_000_000), locks: locks, up: map[string]*host{}, listed: map[string]Node{},
		leader: map[string]string{}, dead: map[string]time.Time{}, orders: map[string]string{},
	}
}

func (h *hosts) join(id, config string, priority int) *host {
	n := &host{id: id, config: config, priority: priority, watch: newMemory(), busy: map[string]bool{}}
	h.up[id] = n
	h.tell(n)
	return n
}

// tell registers the node.
func (h *hosts) tell(n *host) {
	h.listed[n.id] = Node{ID: n.id, Seen: h.now, Config: n.config, Priority: n.priority}
}

// crash ends a node without a release, so that its leases end later.
func (h *hosts) crash(id string) {
	delete(h.up, id)
	maps.DeleteFunc(h.orders, func(lock, _ string) bool { return h.leader[lock] == id })
	for lock, leader := range h.leader {
		if leader == id {
			h.dead[lock] = h.now.Add(simLease)
		}
	}
}

func (h *hosts) read(lock string) Election {
	e := Election{Now: h.now, Lease: simLease, Leader: h.leader[lock], Free: h.leader[lock] == ""}
	for _, id := range slices.Sorted(maps.Keys(h.listed)) {
		if n := h.listed[id]; slices.Contains(h.locks[n.Config], lock) && h.now.Sub(n.Seen) <= simGone {
			e.Nodes = append(e.Nodes, n)
		}
	}
	return e
}

// step lets every node act once, in a random order.
func (h *hosts) step(t *testing.T) {
	h.now = h.now.Add(simLook)
	for _, lock := range slices.Sorted(maps.Keys(h.orders)) {
		to := h.orders[lock]
		delete(h.orders, lock)
		if from := h.up[h.leader[lock]]; from != nil {
			h.tell(from) // registers as a standby
		}
		delete(h.leader, lock)
		if n := h.up[to]; n != nil && h.contends(n, lock) {
			h.wins(lock, n)
		}
	}
	h.elect()
	for _, i := range h.rng.Perm(len(h.up)) {
		n := h.up[slices.Sorted(maps.Keys(h.up))[i]]
		if h.rng.IntN(10) == 0 {
			h.tell(n) // registers less often than it reads
		}
		s := h.look(n)
		n.watch.learn(h.now, s)
		n.last = s
		for _, m := range n.watch.decide(h.now, s) {
			if n.busy[m.lock] || h.leader[m.lock] != n.id {
				t.Fatalf("%s hands over %v", n.id, m)
			}
			if to := h.listed[m.to]; to.Priority != n.priority || to.Config != n.config {
				t.Fatalf("%s hands over to %+v", n.id, to)
			}
			n.watch.noteHandover(h.now, m, simLease)
			h.orders[m.lock] = m.to
			h.moves++
			h.history = append(h.history, fmt.Sprintf("%v %s -> %s: %s", h.now.Unix()%1000, n.id, m.lock, m.reason))
		}
	}
}

func (h *hosts) look(n *host) *snapshot {
	s := &snapshot{self: n.id}
	for _, lock := range h.locks[n.config] {
		e := h.read(lock)
		_, e.Barred = h.orders[lock]
		s.add(candidacyOf(lock, h.leads(n, lock), !n.busy[lock], e), e)
	}
	return s
}

// leads reports whether the node leads the lock. It returns false if an earlier node of the same name led it and has died.
func (h *hosts) leads(n *host, lock string) bool {
	_, died := h.dead[lock]
	return h.leader[lock] == n.id && !died
}

func (h *hosts) contends(n *host, lock string) bool {
	return slices.Contains(h.locks[n.config], lock)
}

func (h *hosts) wins(lock string, n *host) {
	h.leader[lock] = n.id
	delete(h.dead, lock)
	h.tell(n)
}

// rolesOf returns a node's roles in the elections of these locks.
func rolesOf(locks []string, led map[string]bool) (roles []role) {
	for _, lock := range locks {
		roles = append(roles, role{lock: lock, ours: led[lock]})
	}
	return roles
}

// elect gives every free lock to one of the nodes with the shortest delay.
func (h *hosts) elect() {
	for _, lock := range slices.Sorted(maps.Keys(h.everyLock())) {
		if ends, died := h.dead[lock]; h.leader[lock] != "" && (!died || h.now.Before(ends)) {
			continue
		}
		delete(h.leader, lock)
		var best *host
		var least time.Duration
		for _, id := range slices.Sorted(maps.Keys(h.up)) {
			n := h.up[id]
			if !h.contends(n, lock) {
				continue
			}
			led := map[string]bool{}
			for _, key := range h.locks[n.config] {
				led[key] = h.leads(n, key)
			}
			d := acquireDelayFor(id, lock, rolesOf(h.locks[n.config], led), n.last) + time.Duration(h.rng.Int64N(int64(20*time.Millisecond)))
			if best == nil || d < least {
				best, least = n, d
			}
		}
		if best != nil {
			h.wins(lock, best)
		}
	}
}

func (h *hosts) everyLock() map[string]bool {
	all := map[string]bool{}
	for _, locks := range h.locks {
		for _, lock := range locks {
			all[lock] = true
		}
	}
	return all
}

// groups returns the numbers of locks that the nodes lead, for each group of nodes among which locks are spread.
func (h *hosts) groups() map[string][]int {
	counts := map[string][]int{}
	for _, n := range h.up {
		count := 0
		for _, leader := range h.leader {
			if leader == n.id {
				count++
			}
		}
		group := fmt.Sprintf("%s %d", n.config, n.priority)
		counts[group] = append(counts[group], count)
	}
	return counts
}

// needed returns the minimum number of handovers that spread the locks.
func (h *hosts) needed() int {
	moves := 0
	for _, counts := range h.groups() {
		slices.SortFunc(counts, func(a, b int) int { return b - a })
		sum := 0
		for _, n := range counts {
			sum += n
		}
		for i, n := range counts {
			fair := sum / len(counts)
			if i < sum%len(counts) {
				fair++
			}
			moves += max(0, n-fair)
		}
	}
	return moves
}

func locksNamed(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

// Whatever nodes come and go, and however the locks are distributed then, the state must settle: no node leads two locks more than another,
// and no lock moves unnecessarily.
func TestHandoversEndWithWorkSpread(t *testing.T) {
	t.Parallel()
	for range 100 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		shared := locksNamed("s", rng.IntN(3))
		h := newHosts(seed, map[string][]string{
			"x": append(locksNamed("x", 1+rng.IntN(9)), shared...), "y": append(locksNamed("y", rng.IntN(6)), shared...),
		})
		for range 2 + rng.IntN(12) {
			id := fmt.Sprintf("n%d", rng.IntN(6))
			switch {
			case h.up[id] == nil:
				h.join(id, []string{"x", "x", "y"}[rng.IntN(3)], []int{0, 0, 5}[rng.IntN(3)])
			case rng.IntN(2) == 0:
				h.crash(id)
			default: // an operator's order to step down
				for lock, leader := range h.leader {
					if n := h.up[id]; h.contends(n, lock) && h.up[leader] != nil && h.leads(h.up[leader], lock) {
						h.orders[lock] = id
						break
					}
				}
			}
			for range rng.IntN(20) {
				h.step(t)
			}
		}
		// From here on no node comes or goes. Dead nodes are forgotten and free locks get a leader, and then the locks must be spread.
		for range 10 {
			h.step(t)
		}
		moves, needed := h.moves, h.needed()
		for quiet, last := 0, h.moves; quiet < 100; quiet++ {
			if h.step(t); h.moves != last {
				quiet, last = 0, h.moves
			}
			if h.moves > moves+100 {
				t.Fatalf("seed %d: it does not end: %v", seed, h.history[len(h.history)-20:])
			}
		}
		if n := h.moves - moves; n > needed+2 { // two more, because the nodes do not read at the same moment
			t.Errorf("seed %d: %d handovers, %d were needed: %v", seed, n, needed, h.history)
		}
		for group, counts := range h.groups() {
			if top := len(counts) > 0 && h.highest(group); top && slices.Max(counts)-slices.Min(counts) > 1 {
				t.Errorf("seed %d: in group %q the nodes lead %v: %v", seed, group, counts, h.history)
			}
		}
	}
}

// highest reports whether no live node of a higher priority shares a lock with the group.
func (h *hosts) highest(group string) bool {
	var config string
	var priority int
	if _, err := fmt.Sscan(group, &config, &priority); err != nil {
		panic(err)
	}
	for _, n := range h.up {
		for _, lock := range h.locks[n.config] {
			if n.priority > priority && slices.Contains(h.locks[config], lock) {
				return false
			}
		}
	}
	return true
}

// spread returns the number of locks that each node leads, by name.
func (h *hosts) spread() map[string]int {
	counts := map[string]int{}
	for id := range h.up {
		counts[id] = 0
	}
	for _, leader := range h.leader {
		counts[leader]++
	}
	return counts
}

func (h *hosts) steps(t *testing.T, n int) {
	for range n {
		h.step(t)
	}
}

func wantSpread(t *testing.T, h *hosts, want map[string]int) {
	t.Helper()
	if got := h.spread(); !maps.Equal(got, want) {
		t.Fatalf("locks are led %v, want %v: %v", got, want, h.history)
	}
}

func TestAJoiningNodeIsHandedItsShareAndTheDeadAreNot(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 6)})
	h.join("a", "x", 0)
	h.steps(t, 5)
	wantSpread(t, h, map[string]int{"a": 6})
	h.join("b", "x", 0)
	h.step(t)
	if h.moves > 0 {
		t.Error("a node is handed a lock at the moment that it comes")
	}
	h.steps(t, 15)
	wantSpread(t, h, map[string]int{"a": 3, "b": 3})
	h.join("c", "x", 0)
	h.steps(t, 15)
	wantSpread(t, h, map[string]int{"a": 2, "b": 2, "c": 2})
	if h.moves != 5 {
		t.Errorf("%d handovers, want 5: %v", h.moves, h.history)
	}
	h.crash("c")
	h.steps(t, 40) // it is listed for a minute after its death
	for _, told := range h.history[5:] {
		t.Errorf("after a crash: %s", told)
	}
	wantSpread(t, h, map[string]int{"a": 3, "b": 3})
}

func TestALockUnderWhichRunsGoOnIsNotHandedOver(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 4)})
	a := h.join("a", "x", 0)
	h.steps(t, 5)
	a.busy["x0"], a.busy["x1"], a.busy["x2"] = true, true, true
	h.join("b", "x", 0)
	h.steps(t, 100)
	wantSpread(t, h, map[string]int{"a": 3, "b": 1})
	a.busy["x1"] = false
	h.steps(t, 5)
	wantSpread(t, h, map[string]int{"a": 2, "b": 2})
	if h.leader["x1"] != "b" {
		t.Errorf("led by %v", h.leader)
	}
}

// The node with the most locks may have runs that do not end. Then the next node must hand over a lock.
func TestABusyLeaderDoesNotKeepOthersFromHandingOver(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 8)})
	a := h.join("a", "x", 0)
	h.join("b", "x", 0)
	h.steps(t, 15)
	for i, lock := range h.locks["x"] {
		a.busy[lock] = true
		h.leader[lock] = []string{"a", "b"}[i%2]
	}
	h.step(t)
	for _, n := range h.up {
		h.tell(n) // the nodes that have just lost a lock
	}
	h.join("c", "x", 0)
	h.steps(t, int(nextMover/simLook)-2)
	wantSpread(t, h, map[string]int{"a": 4, "b": 4, "c": 0})
	h.steps(t, int(2*nextMover/simLook))
	wantSpread(t, h, map[string]int{"a": 4, "b": 2, "c": 2})
}

// While a node of a higher priority exists, no lock is handed over. When that node goes, this ends for all other nodes at once, and they
// must not all hand over at the same moment.
func TestOneNodeAtATimeHandsOverWhenAHigherOneIsGone(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 6)})
	for _, id := range []string{"a", "b", "c"} {
		h.join(id, "x", 0)
	}
	h.steps(t, 15)
	wantSpread(t, h, map[string]int{"a": 2, "b": 2, "c": 2})
	h.join("d", "x", 0)
	h.join("top", "x", 5)
	before := h.moves
	for range 100 {
		h.tell(h.up["top"])
		h.step(t)
	}
	if h.moves > before {
		t.Fatalf("handed over beside a node of a higher priority: %v", h.history)
	}
	h.crash("top")
	delete(h.listed, "top")
	h.steps(t, 100)
	wantSpread(t, h, map[string]int{"a": 1, "b": 2, "c": 2, "d": 1})
	if moves := h.moves - before; moves != 1 {
		t.Errorf("%d handovers, want 1: %v", moves, h.history)
	}
}

func TestOfUnequalNodesNothingIsSpread(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 4), "y": locksNamed("x", 4)})
	h.join("a", "x", 1)
	h.steps(t, 5)
	h.join("b", "x", 0) // has a lower priority
	h.join("c", "y", 1) // has another configuration
	h.steps(t, 50)
	wantSpread(t, h, map[string]int{"a": 4, "b": 0, "c": 0})
}

// A successor that does not take a lock that is handed to it gets no further lock before it registers again.
func TestASuccessorThatIsDeadIsTriedOnce(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 4)})
	h.join("a", "x", 0)
	h.steps(t, 5)
	h.join("b", "x", 0)
	h.step(t)
	h.crash("b")
	h.steps(t, 40)
	if h.moves != 1 {
		t.Errorf("%d handovers to a dead node, want one: %v", h.moves, h.history)
	}
	wantSpread(t, h, map[string]int{"a": 4})
	h.join("b", "x", 0)
	h.steps(t, 20)
	wantSpread(t, h, map[string]int{"a": 2, "b": 2})
}

func TestNothingIsHandedOverWhileTheElectionsAreUnsettled(t *testing.T) {
	for name, disturb := range map[string]func(lock string, e *Election){
		"a lock is free": func(lock string, e *Election) {
			if lock == "x2" {
				e.Free, e.Leader = true, ""
			}
		},
		"a word against ours": func(lock string, e *Election) {
			if lock == "x2" {
				e.Leader = ""
			}
		},
		"one of a higher priority is there": func(_ string, e *Election) {
			e.Nodes = append(e.Nodes, Node{ID: "c", Seen: e.Now, Priority: 5})
		},
		"b stands aside":                    func(_ string, e *Election) { e.Nodes[1].CoolingDown = true },
		"the lock cannot change hands":      func(_ string, e *Election) { e.Barred = true },
		"nobody else is there, or may lead": func(_ string, e *Election) { e.Nodes = e.Nodes[:1] },
		"none":                              func(string, *Election) {},
	} {
		h := newHosts(1, map[string][]string{"x": locksNamed("x", 3)})
		h.join("a", "x", 0)
		h.join("b", "x", 0)
		w := newMemory()
		var m []*handover
		for at := range 3 {
			h.now = h.now.Add(simLook)
			s := &snapshot{self: "a"}
			for _, lock := range h.locks["x"] {
				h.leader[lock] = "a"
				e := h.read(lock)
				disturb(lock, &e)
				s.add(candidacyOf(lock, true, true, e), e)
			}
			w.learn(h.now, s)
			if m = w.decide(h.now, s); len(m) > 0 && at < 2 {
				t.Errorf("%s: at once: %v", name, m)
			}
		}
		if (len(m) > 0) != (name == "none") {
			t.Errorf("%s: %v", name, m)
		}
	}
}
