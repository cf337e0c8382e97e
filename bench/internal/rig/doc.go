// Package rig contains the code that the measuring programs share: the report with its requirements, the figures of processes, and the
// build of baton as it is shipped.
package rig
