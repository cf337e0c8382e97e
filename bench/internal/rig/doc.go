// Package rig is what the measuring programs share: the report with its
// requirements, figures of processes, and building baton as it is shipped.
package rig
