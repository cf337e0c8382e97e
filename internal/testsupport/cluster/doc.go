// Package cluster runs real baton processes for tests: it builds the program,
// starts nodes of one election with generated configurations, or one node with the
// test's own, signals them, and reads what they log and answer over HTTP. A
// Supervisor starts them again for tests that break them at random.
//
// The methods fail the test on whatever should not go wrong, so call them from
// the test's own goroutine. Every process dies with the test process, also when
// that one is killed.
package cluster
