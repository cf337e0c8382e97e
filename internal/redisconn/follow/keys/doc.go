// Package keys finds the keys that the commands of a replication stream may have changed. It uses the server's own list of commands
// (COMMAND), and has its own rules for commands that the list does not describe.
//
//	Table    the commands of one server; [Read] asks the server for them, and [Table.Changes] finds the keys of one command
//	spec     the places of some keys among the arguments of a command, from the key specifications that servers have since Redis 7.0,
//	         or from the first key, the last key and the step that earlier servers give
//	special  a command with its own rule, such as MOVE, COPY, SORT or FLUSHALL
//	Visitor  receives the keys
//
// The invariant: no key that may have changed is left out. [Table.Changes] may report a key that has not changed. If it cannot find the
// keys, it returns false, and its caller must assume that any key may have changed.
//
// It cannot find the keys of an unknown command, of a script that is replicated as a call, and of MIGRATE. The same is true for a command
// whose arguments do not fit its spec, or whose name or key was too long to be kept.
package keys
