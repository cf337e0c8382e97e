// Package keys finds the keys that the commands of a replication stream may have changed. It uses the server's own list of commands
// (COMMAND), and has rules of its own for commands which that list does not describe. For an unknown command it reports that any key may
// have changed.
package keys
