// Package daemon puts baton together: it is the one place that knows every
// package. Run is the daemon itself. It starts the parts in this order: stores,
// jobs, listener, election. The other exported functions serve commands that run
// beside a daemon.
package daemon
