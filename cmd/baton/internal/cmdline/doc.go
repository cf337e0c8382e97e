// Package cmdline has the parts that the commands of baton share before they print.
//
//	Env         the world outside: arguments, streams, environment; a test brings its own
//	ExitError   an error with an exit code, which scripts can test
//	config      the flags that name a configuration or an election, and its loading
//	remote      the choice of an operate.Operator: the servers themselves, or the API of a node
//	Completion  the words that a shell may offer for a flag or an argument
//
// How the Operator is chosen: --server asks that node. Without it, the servers of the configuration are opened. If this user may not read
// the configuration or one of its secrets, the command asks the daemon of this host over its admin socket, if that takes orders of this
// user.
//
// The invariants:
//
//   - A command that asks the daemon by itself says so, and why. It does not if flags name another installation.
//   - A completion never writes an error into the line that is typed, and takes half a second at most.
package cmdline
