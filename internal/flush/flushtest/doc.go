// Package flushtest contains the conformance suites of package flush. The suites check the rules that every flush.Source and every
// flush.Sink, fake or real, must keep so that a flush is exact.
//
//	SourceHarness  a kind of source under test: the rules that it promises to keep decide which cases are run
//	SinkHarness    a database under test: every case holds for all of them
//	Step           a step of the protocol; a test stops a run at each step, as if the process died there
//	Database       a database in memory that keeps the rules of a Sink
//	Script         a source that delivers given pages, for tests of a pipeline that need no real source
//
// The package of a new source or database must run its suite with the real server.
package flushtest
