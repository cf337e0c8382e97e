// Package jobcmd is baton job: how jobs stand, and orders for them.
//
//	list, show, next, history, logs     questions: each prints a table or lines, or one document with -o
//	run, cancel, pause, resume          orders: flags become an operate.Order, and its outcome becomes words and an exit code
//	accept                              allows a job to change rows that it did not write
//	verify, backfill                    orders that take long, and their progress
//	preview                             what a flush would write, read from the sources without any change
//
// A command works on an operate.Operator, which package cmdline chooses: the servers that the configuration names, or a node's API. Only
// preview and accept always open the servers.
//
// The invariants:
//
//   - A mistake in the flags is found before any server is asked, and is a usage error.
//   - Programs get the data of the Operator as it is. Words for people are made here, and only for people.
//   - Texts from outside go through package show, so they cannot control the terminal.
//
// What fails, and what then:
//
//   - No node leads: the exit code says so, for scripts.
//   - The order was given and its outcome is not known in time: the message says what was done, and how to find out the rest.
package jobcmd
