// Package testsupport starts the real servers that tests run against: Redis,
// PostgreSQL and MariaDB from the system's packages, SQLite files, and a TCP
// proxy that breaks connections on purpose.
//
// Each server has its own port on loopback and its own temporary directory. The server's settings keep acknowledged data, because otherwise
// a kill would lose data that a real server keeps. The server ends with the process that started the server, even if SIGKILL ends that
// process. Each test has its own Redis or Cluster. If the test has changed only what can be restored, the server is emptied and serves the
// next test. Tests share one PostgreSQL and one MariaDB server, and each test has its own database there.
//
//	Daemon, SQLDaemon   servers with error returns, for programs such as benchmarks
//	Redis, Database     the same servers for a test, which fails if an operation fails
//	Sentinel            a master with two replicas and three Sentinels
//	RedisCluster        three masters with a replica each
//	Proxy               can cut, refuse or hang connections, and lose one request or one reply
//	Program             a program of this module, built once per test process
//
// If a server is not installed, the test fails with a message that says how to install it. No test is skipped.
package testsupport
