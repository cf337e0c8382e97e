// Package testsupport starts the real servers that tests run against: Redis,
// PostgreSQL and MariaDB from the system's packages, SQLite files, and a TCP
// proxy that breaks connections on purpose.
//
// A test has its server to itself: a port on loopback, a temporary directory, and
// durable settings left on, so that a test that kills one is honest. It dies
// with the process that started it, also when that one is killed with SIGKILL.
// A Redis or Cluster that a test leaves as it found it is emptied and serves the
// next one; of PostgreSQL and MariaDB tests share one server, with a database each.
//
//	Daemon, SQLDaemon   servers with error returns, for programs such as benchmarks
//	Redis, Database     the same bound to a test, which fails when anything goes wrong
//	Sentinel            a master with two replicas and three Sentinels
//	RedisCluster        three masters with a replica each
//	Proxy               cut, refuse, hang, lose one request or one reply
//	Program             a program of this module, built once a test process
//
// A server that is not installed fails the test and names the remedy; nothing
// is ever skipped.
package testsupport
