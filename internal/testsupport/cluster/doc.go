// Package cluster runs real baton processes for tests. It builds the program, and starts the nodes of one election with generated
// configurations, or one node with the test's own configuration. It sends signals to the nodes, and reads their logs and their answers over
// HTTP. A Supervisor restarts the nodes in tests that break nodes at random.
//
// The methods fail the test on unexpected errors, so call them from the test's own goroutine. Every process ends with the test process,
// even if the test process is killed.
package cluster
