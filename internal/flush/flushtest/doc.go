// Package flushtest has the conformance suites of the ports of a flush: what every Source
// and every Sink has to keep, a fake as well as a real one, for a flush to be exact. It also
// has a database in memory, and stops a run at every step of the protocol.
package flushtest
