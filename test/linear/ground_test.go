package linear

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/test/linear/wire"
)

// ground is the servers that a design runs on, and what can happen to them.
type ground interface {
	// tell completes what a node is told: where its servers are, by its own ways.
	tell(node int, s *wire.Setup)
	// ways are those of the node's ways to its servers that a fault hits.
	ways(node int, draw uint64) []*testsupport.Proxy
	// traits are the faults of the servers.
	traits() []trait
	// begin carries out a fault of the servers. It returns what was hit, and how to end
	// the fault.
	begin(f fault) (target string, end func() error, err error)
	// stepDown orders the leader to step down.
	stepDown(ctx context.Context) error
	// margin is what a lease may be short of its TTL by, for reasons that the ground
	// knows.
	margin() time.Duration
}

// clockRate is what two clocks may drift apart in one lease, and the resolution of the
// store's.
const clockRate = 2*time.Millisecond + lease/1000

const lockKey = "baton"

// designs are all that is tested, and on what.
var designs = []struct {
	design wire.Design
	ground func(t *testing.T) ground
}{
	{wire.Lua, newSingle(script.String)},
	{wire.Sentinel, newReplicated},
	{wire.Quorum, newIndependent},
	{wire.SetNX, newSingle(script.String)},
	{wire.Redisson, newSingle(script.Redisson)},
}

// some is all of the ways in one of three draws, else each with an even chance.
func some(ways []*testsupport.Proxy, draw uint64) []*testsupport.Proxy {
	rng := rand.New(rand.NewPCG(draw, 1))
	if rng.IntN(3) == 0 {
		return ways
	}
	return slices.DeleteFunc(slices.Clone(ways), func(*testsupport.Proxy) bool { return rng.IntN(2) == 0 })
}

// stepDownBy is ground.stepDown where one Redis has the lock.
func stepDownBy(ctx context.Context, o redisconn.Options, f script.Format) error {
	store, err := redisconn.Open(o)
	if err != nil {
		return err
	}
	defer store.Close() // it was only asked
	_, _, err = redislock.NewElection(store, lockKey, f).StepDown(ctx, "", "the nemesis says so")
	return err
}
