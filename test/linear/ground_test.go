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

// ground contains the servers of a design, and the faults that can hit them.
type ground interface {
	// tell completes the setup of a node with the addresses of the servers, by the node's own ways.
	tell(node int, s *wire.Setup)
	// ways returns the node's ways to its servers that a fault hits.
	ways(node int, draw uint64) []*testsupport.Proxy
	// traits returns the faults of the servers.
	traits() []trait
	// begin begins a fault of the servers. It returns the name of the server that the fault hits, and the function that ends the fault.
	begin(f fault) (target string, end func() error, err error)
	// stepDown orders the leader to step down.
	stepDown(ctx context.Context) error
	// margin returns the time by which a lease may be shorter than its TTL because of these servers.
	margin() time.Duration
}

// clockRate is the maximum drift between two clocks in one lease, plus the resolution of the store's clock.
const clockRate = 2*time.Millisecond + lease/1000

const lockKey = "baton"

// designs lists the tested designs, each with its servers.
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

// some returns all of the ways in one of three draws. Otherwise it returns each way with a chance of one half.
func some(ways []*testsupport.Proxy, draw uint64) []*testsupport.Proxy {
	rng := rand.New(rand.NewPCG(draw, 1))
	if rng.IntN(3) == 0 {
		return ways
	}
	return slices.DeleteFunc(slices.Clone(ways), func(*testsupport.Proxy) bool { return rng.IntN(2) == 0 })
}

// stepDownBy implements ground.stepDown for a lock in one Redis.
func stepDownBy(ctx context.Context, o redisconn.Options, f script.Format) error {
	store, err := redisconn.Open(o)
	if err != nil {
		return err
	}
	defer store.Close() // the store was only read
	_, _, err = redislock.NewElection(store, lockKey, f).StepDown(ctx, "", "the nemesis says so")
	return err
}
