// Package flushtest has the conformance suites of the ports of a flush: what every Source and every Sink has to keep, a fake as well as a
// real one, for a flush to be exact.
//
//	SourceBench  a kind of source under test: its promises choose the cases
//	SinkBench    a database under test: every case holds for all of them
//	Step         a boundary of the protocol; a test stops a run at each, as if the process died there
//	Database     a database in memory that keeps the promises of a Sink
//	Script       a source that delivers given pages, for tests of a pipeline that need less than a source's promises
//
// A new source or database passes when its package runs the suite over the real server.
package flushtest
