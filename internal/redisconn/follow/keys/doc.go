// Package keys says which keys the commands of a replication stream may have changed. It knows this
// from the server's own list of commands (COMMAND), and from itself of those that say it in another
// way. What it does not know, it says so: then any key may have changed.
package keys
