package linear

import (
	"testing"
	"time"

	"baton/test/linear/wire"

	"github.com/anishathalye/porcupine"
)

// at returns an operation of a hand-written history. Its times are in ms.
func at(call, ret int64, op wire.Op, owner string, outcome wire.Outcome, epoch int64) operation {
	return operation{
		node: int(owner[0] - 'a'), op: op, owner: owner, outcome: outcome, epoch: epoch,
		call: call * int64(time.Millisecond), ret: ret * int64(time.Millisecond),
	}
}

// In all of these histories the lease lasts for 1,000 ms.
func TestModelTellsLegalFromIllegal(t *testing.T) {
	const ttl = time.Second
	won := func(call, ret int64, owner string, epoch int64) operation {
		return at(call, ret, wire.Acquire, owner, wire.Won, epoch)
	}
	renewed := func(call, ret int64, owner string) operation { return at(call, ret, wire.Renew, owner, wire.Done, 0) }
	released := func(call, ret int64, owner string) operation {
		return at(call, ret, wire.Release, owner, wire.Done, 0)
	}
	raised := func(call, ret int64, owner string, epoch int64) operation {
		return at(call, ret, wire.Raise, owner, wire.Done, epoch)
	}
	unknown := func(call int64, op wire.Op, owner string) operation {
		return at(call, call+300, op, owner, wire.Unknown, 0)
	}

	for _, c := range []struct {
		name  string
		legal bool
		ops   []operation
	}{
		{"one after the other", true, []operation{won(0, 5, "a", 1), renewed(300, 305, "a"), released(400, 405, "a"), won(410, 415, "b", 2)}},
		{"the lease has run out", true, []operation{won(0, 5, "a", 1), won(1001, 1005, "b", 2)}},
		{"the lease runs out while asked", true, []operation{won(0, 5, "a", 1), won(990, 1005, "b", 2)}},
		{"asked again: the same epoch", true, []operation{won(0, 5, "a", 1), won(300, 305, "a", 1), renewed(900, 905, "a")}},
		{"renewed late, but nobody has won since", true, []operation{won(0, 5, "a", 1), renewed(1900, 1905, "a"), won(2901, 2905, "b", 2)}},
		{"won anew by the same owner after its lease", true, []operation{won(0, 5, "a", 1), won(1500, 1505, "a", 2)}},
		{"a release crosses a win", true, []operation{won(0, 5, "a", 1), released(100, 200, "a"), won(90, 210, "b", 2)}},
		{"an unknown release was applied", true, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), won(150, 155, "b", 2)}},
		{"an unknown release was applied long after", true, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), won(800, 805, "b", 2)}},
		{"an unknown release was not applied", true, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), renewed(500, 505, "a"), won(1501, 1505, "b", 2)}},
		{"an unknown acquire was applied and told later", true, []operation{unknown(0, wire.Acquire, "a"), won(400, 405, "a", 1)}},
		{"an unknown release comes to nothing, and others win on", true, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), won(1100, 1105, "b", 2), released(1200, 1205, "b"), won(1300, 1305, "c", 3)}},
		{"an unknown renewal was not applied", true, []operation{won(0, 5, "a", 1), unknown(500, wire.Renew, "a"), won(1001, 1005, "b", 2)}},
		{"a call without an end was not applied", true, []operation{won(0, 5, "a", 1), at(500, 0, wire.Renew, "a", "", 0), won(1001, 1005, "b", 2)}},
		{"answers that change nothing", true, []operation{won(0, 5, "a", 1), at(100, 105, wire.Acquire, "b", wire.Held, 0), at(200, 205, wire.Renew, "a", wire.Lost, 0), at(300, 305, wire.Acquire, "b", wire.Wait, 0), at(310, 315, wire.Acquire, "b", wire.Refused, 0)}},
		{"a release of what is not held", true, []operation{won(0, 5, "a", 1), released(100, 105, "b"), renewed(200, 205, "a")}},
		{"the epoch is raised", true, []operation{won(0, 5, "a", 1), raised(100, 105, "a", 7), released(200, 205, "a"), won(300, 305, "b", 8)}},

		{"two winners within one lease", false, []operation{won(0, 5, "a", 1), won(900, 995, "b", 2)}},
		{"two winners within a renewed lease", false, []operation{won(0, 5, "a", 1), renewed(500, 505, "a"), won(1400, 1495, "b", 2)}},
		{"two winners within a lease that was asked for again", false, []operation{won(0, 5, "a", 1), won(500, 505, "a", 1), won(1400, 1495, "b", 2)}},
		{"two winners at the same moment", false, []operation{won(0, 50, "a", 1), won(0, 50, "b", 2)}},
		// b cannot have won before 1000. So c cannot have won before 2000, however early b asked.
		{"a lease that began late ends late", false, []operation{won(0, 5, "a", 1), won(10, 1500, "b", 2), won(1600, 1995, "c", 3)}},
		{"the epoch is the same", false, []operation{won(0, 5, "a", 1), released(100, 105, "a"), won(200, 205, "b", 1)}},
		{"the epoch falls", false, []operation{won(0, 5, "a", 9), released(100, 105, "a"), won(200, 205, "b", 8)}},
		{"the epoch falls after a lease has run out", false, []operation{won(0, 5, "a", 9), won(2000, 2005, "b", 8)}},
		{"the epoch is not above a raised one", false, []operation{won(0, 5, "a", 1), raised(100, 105, "a", 7), released(200, 205, "a"), won(300, 305, "b", 7)}},
		{"the same owner wins anew under the old epoch", false, []operation{won(0, 5, "a", 1), released(100, 105, "a"), won(200, 205, "a", 1)}},
		{"asked again: another epoch", false, []operation{won(0, 5, "a", 1), won(300, 305, "a", 2)}},
		{"renewed by another", false, []operation{won(0, 5, "a", 1), renewed(300, 305, "b")}},
		{"renewed by the holder of before", false, []operation{won(0, 5, "a", 1), won(1100, 1105, "b", 2), renewed(1200, 1205, "a")}},
		{"renewed after the release", false, []operation{won(0, 5, "a", 1), released(100, 105, "a"), renewed(200, 205, "a")}},
		{"renewed by nobody who has won", false, []operation{renewed(0, 5, "a")}},
		{"raised by another", false, []operation{won(0, 5, "a", 1), raised(300, 305, "b", 7)}},
		{"a raise that lowers", false, []operation{won(0, 5, "a", 5), raised(300, 305, "a", 4)}},
		{"a release frees another's lock", false, []operation{won(0, 5, "a", 1), released(100, 105, "b"), won(200, 205, "c", 2)}},
		{"an unknown release frees another's lock", false, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "b"), won(200, 205, "c", 2)}},
		{"an unknown release frees what others won since", false, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), won(1100, 1105, "b", 2), won(1200, 1205, "c", 3)}},
		{"an unknown release frees what was renewed after", false, []operation{won(0, 5, "a", 1), unknown(100, wire.Release, "a"), won(200, 205, "b", 2), renewed(300, 305, "a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := porcupine.CheckOperationsTimeout(model(ttl), forPorcupine(c.ops), 10*time.Second)
			if want := map[bool]porcupine.CheckResult{true: porcupine.Ok, false: porcupine.Illegal}[c.legal]; got != want {
				t.Errorf("found %s, want %s", got, want)
			}
		})
	}
}
