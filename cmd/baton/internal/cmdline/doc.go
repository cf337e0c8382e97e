// Package cmdline contains the code that the commands of baton share, except for the output.
//
//	Env         the environment: arguments, streams, variables; a test replaces it
//	ExitError   an error with an exit code, which scripts can test
//	config      the flags that name a configuration or an election, and the loading of the configuration
//	remote      the choice of an operate.Operator, which asks the servers directly or the API of a node
//	Completion  the words that the shell may offer for a flag or an argument
//
// The Operator is chosen as follows. If --server is given, the Operator asks that node. Otherwise the Operator opens the servers of the
// configuration. If this user may not read the configuration or one of its secrets, the Operator uses the admin socket of this host's
// daemon. The daemon must accept orders from this user.
//
// The invariants:
//
//   - If a command asks the daemon although no flag requests this, the command prints a message with the reason. It does not ask the
//     daemon if flags name another installation.
//   - A completion never writes an error into the command line that the user types, and takes at most half a second.
package cmdline
