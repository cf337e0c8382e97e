// Package rig is the common part of the measuring programs: the report with its requirements, figures of processes, and building baton as
// it is shipped.
package rig
