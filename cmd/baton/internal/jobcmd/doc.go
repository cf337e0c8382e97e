// Package jobcmd implements "baton job", which shows the state of jobs and gives orders for them.
//
//	list, show, next, history, logs     questions: each prints a table, lines, or with -o one document
//	run, cancel, pause, resume          orders: flags become an operate.Order, and its outcome becomes a text and an exit code
//	accept                              an order that allows a job to change rows that the job did not write
//	verify, backfill                    orders whose work takes long, and the progress of that work
//	preview                             the rows that a flush would write; preview reads the sources and changes nothing
//
// A command uses an operate.Operator. Package cmdline chooses whether the Operator asks the servers that the configuration names, or a
// node's API. Only preview and accept always open the servers.
//
// The invariants:
//
//   - A command finds a mistake in the flags before it sends a request, and reports the mistake as a usage error.
//   - Programs get the data of the Operator unchanged. This package makes texts only for people.
//   - Texts from outside go through package show, so that they cannot control the terminal.
//
// The failures:
//
//   - If no node leads, the exit code says so, for scripts.
//   - If the outcome of an order does not arrive in time, the message says which part is finished, and how to read the rest later.
package jobcmd
