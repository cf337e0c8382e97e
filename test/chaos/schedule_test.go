package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// kind says what a fault breaks, and how.
type kind string

const (
	killLeader   kind = "SIGKILL of the leader"
	killNode     kind = "SIGKILL of a node"
	termNode     kind = "SIGTERM of a node"
	freezeLeader kind = "SIGSTOP of the leader"
	stepDown     kind = "stepdown"
	redisKill    kind = "SIGKILL of Redis"
	redisFreeze  kind = "SIGSTOP of Redis"
	dbKill       kind = "SIGKILL of PostgreSQL"
	dbFreeze     kind = "SIGSTOP of PostgreSQL"
	redisCut     kind = "way to Redis: connections reset"
	redisForget  kind = "way to Redis: connections forgotten"
	redisBlock   kind = "way to Redis: refused"
	redisHang    kind = "way to Redis: hangs"
	redisMute    kind = "way to Redis: replies hang"
	dbCut        kind = "way to PostgreSQL: connections reset"
	dbForget     kind = "way to PostgreSQL: connections forgotten"
	dbBlock      kind = "way to PostgreSQL: refused"
	dbHang       kind = "way to PostgreSQL: hangs"
	dbMute       kind = "way to PostgreSQL: replies hang"
	unplug       kind = "every way hangs"

	slotMoves      kind = "a slot moves"
	masterFailover kind = "CLUSTER FAILOVER"
	masterKill     kind = "SIGKILL of a master"

	poolerKill   kind = "SIGKILL of the pooler"
	poolerFreeze kind = "SIGSTOP of the pooler"
	poolerShort  kind = "server_lifetime of the pooler is a second"
	// In session mode baton continues to work. In statement mode its batches wait until the fault ends.
	poolerSession   kind = "pool_mode of the pooler is session"
	poolerStatement kind = "pool_mode of the pooler is statement"
)

// place is a part of the installation that only one fault at a time may break.
type place string

const (
	atNode    place = "node"
	atFreezer place = "freezer" // other nodes may be killed while one is frozen
	atRedis   place = "redis"
	atDB      place = "database"
	atPooler  place = "pooler"
	ofPooler  place = "settings of the pooler"
	onRedis   place = "way to redis"
	onDB      place = "way to database"
	onBoth    place = "every way" // may overlap with a fault of one: the way is whole when either ends
	atControl place = "control"
	atCluster place = "cluster"
)

// trait says how a kind of fault is drawn. Durations are in leases. A kind without a duration is over immediately. The kill of a server
// is over when the server runs again.
type trait struct {
	kind           kind
	place          place
	weight         int
	least, longest float64
}

var traits = []trait{
	{killLeader, atNode, 5, 0, 0},
	{killNode, atNode, 2, 0, 0},
	{termNode, atNode, 1, 0, 0},
	{freezeLeader, atFreezer, 5, 0.5, 3},
	{stepDown, atControl, 2, 0, 0},
	{redisKill, atRedis, 4, 0, 0.5},
	{redisFreeze, atRedis, 2, 0.25, 2},
	{dbKill, atDB, 4, 0, 0.5},
	{dbFreeze, atDB, 2, 0.25, 2},
	{redisCut, onRedis, 2, 0, 0},
	{redisForget, onRedis, 2, 0, 0},
	{redisBlock, onRedis, 1, 0.25, 2},
	{redisHang, onRedis, 2, 0.25, 2},
	{redisMute, onRedis, 2, 0.25, 2},
	{dbCut, onDB, 2, 0, 0},
	{dbForget, onDB, 2, 0, 0},
	{dbBlock, onDB, 1, 0.25, 2},
	{dbHang, onDB, 2, 0.25, 2},
	{dbMute, onDB, 2, 0.25, 2},
	{unplug, onBoth, 3, 0.5, 3},
}

// fault is one entry of a schedule.
type fault struct {
	kind  kind
	place place
	at    time.Duration // since the start
	lasts time.Duration
	node  int // the node that the fault hits, unless it hits the leader
	// leader means that a fault of a way hits the leader's way.
	leader bool
	// intoSlot, unless negative, delays the fault until this time after a slot of the jobs, because runs are short and the faults must
	// hit them.
	intoSlot time.Duration
}

func (f fault) String() string {
	text := string(f.kind)
	if f.lasts > 0 {
		text += fmt.Sprintf(" for %v", f.lasts)
	}
	return text
}

const (
	nodes = 3
	lease = 2 * time.Second
	// pace is the average time of a fault.
	pace = 1900 * time.Millisecond
	// quiet is the length of the pauses without a fault, which show the recovery.
	quiet = lease + 500*time.Millisecond
	// slotEvery divides the time between two slots of every job.
	slotEvery = 500 * time.Millisecond
)

// poolerTraits are the additional faults of an installation with PgBouncer in front of PostgreSQL.
var poolerTraits = []trait{
	{poolerKill, atPooler, 6, 0, 0.5},
	{poolerFreeze, atPooler, 3, 0.25, 2},
	{poolerShort, ofPooler, 3, 1, 4},
	{poolerSession, ofPooler, 3, 0.5, 3},
	{poolerStatement, ofPooler, 2, 0.25, 2},
}

// clusterTraits are the additional faults of an installation whose data is in a Redis Cluster.
var clusterTraits = []trait{
	{slotMoves, atCluster, 24, 0, 0.5},
	{masterFailover, atCluster, 3, 0, 0},
	{masterKill, atCluster, 3, 0, 0.25},
}

// draw makes the schedule of a seed. Some faults overlap. If the pace allows it, there are pauses without a fault. All faults are over at
// total.
func draw(of []trait, seed uint64, total time.Duration) []fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	between := func(lo, hi time.Duration) time.Duration {
		return lo + time.Duration(rng.Int64N(int64(hi-lo)+1)).Round(time.Millisecond)
	}
	var faults []fault
	busy := map[place]time.Duration{} // the time until which a place is broken
	healed := time.Duration(0)        // the time when all faults so far are over
	for at := 300 * time.Millisecond; at < total; {
		t := pick(of, rng, busy, at)
		f := fault{kind: t.kind, place: t.place, at: at, node: rng.IntN(nodes), leader: rng.IntN(4) > 0, intoSlot: -1}
		if t.longest > 0 {
			f.lasts = min(between(scale(t.least), scale(t.longest)), total-at)
		}
		if into := between(0, 60*time.Millisecond); rng.IntN(5) < 3 {
			f.intoSlot = into
		}
		faults = append(faults, f)
		busy[t.place] = at + f.lasts + 100*time.Millisecond
		healed = max(healed, at+f.lasts)
		at += between(200*time.Millisecond, 1400*time.Millisecond)
		rest := healed + quiet
		if rest <= time.Duration(len(faults))*pace && rng.IntN(10) < 7 {
			at = max(at, rest+between(0, slotEvery))
		}
	}
	return faults
}

func scale(leases float64) time.Duration {
	return time.Duration(leases * float64(lease)).Round(time.Millisecond)
}

// pick draws a kind of fault whose place is not already broken.
func pick(of []trait, rng *rand.Rand, busy map[place]time.Duration, at time.Duration) trait {
	var free []trait
	sum := 0
	for _, t := range of {
		if busy[t.place] <= at {
			free = append(free, t)
			sum += t.weight
		}
	}
	n := rng.IntN(sum) // the place of control is never busy for long
	for _, t := range free {
		if n -= t.weight; n < 0 {
			return t
		}
	}
	panic("unreachable: the weights add up to the sum")
}
