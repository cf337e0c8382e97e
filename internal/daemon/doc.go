// Package daemon puts baton together: it is the one place that knows every
// package. Run is the daemon itself, in the order in which things live: stores,
// jobs, listener, election. The rest of the exported functions are what the
// commands do beside a running daemon.
package daemon
