package capture

import (
	"math/rand/v2"

	"baton/internal/testsupport"
	"baton/internal/testsupport/nemesis"
)

// topology is a way to run the Redis that has the data.
type topology struct {
	name      string
	databases int // that programs use
	// tags are how many hash tags keys have: those of one command share one. 1: keys have none.
	tags  int
	start func(*lab, ...testsupport.RedisOption) store
}

var topologies = []topology{
	{name: "sentinel", databases: 2, tags: 1, start: startSentinel},
	{name: "cluster", databases: 1, tags: hashTags, start: startCluster},
}

// store is the Redis that has the data, as a topology. Writers call draw and doubt; the rest is of the test's goroutine.
type store interface {
	// yaml is what the nodes' configuration says of it, to be reached in a database.
	yaml(db int) string
	// servers are all that have data, whether they run or not.
	servers() []*testsupport.RedisDaemon
	// masters are those that programs write to. Some may be down.
	masters() ([]*testsupport.RedisDaemon, error)
	// has reports whether a master serves a key that it has.
	has(master *testsupport.RedisDaemon, key string) bool

	// draw draws the tag of the next keys, and says who serves them.
	draw(rng *rand.Rand) (tag string, master *testsupport.RedisDaemon, err error)
	// doubt makes the next draw ask who the masters are.
	doubt()

	// traits are those of the faults that this topology has beside those of all.
	traits() []nemesis.Trait
	// begin carries one of these out, on a master if it is on any.
	begin(f nemesis.Fault, master *testsupport.RedisDaemon) (target string, end func())
	// unsettle is called before a master may be replaced, and settled once it has come back.
	unsettle() (settled func())
	// whole makes sure that nothing is broken any more.
	whole() error
}
