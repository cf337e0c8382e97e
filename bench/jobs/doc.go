// Command jobs measures the cost of many jobs for a node, and how late their commands start when many are due in the same second: a real
// `baton run` with its own defaults, a private Redis that syncs every write to the disk, and `true` as the command.
//
// # The measurements
//
//   - idle: resident memory and goroutines of a leader with no job, and with all of
//     them, none due
//   - idle flushes: a hundred counters jobs with nothing to do, "@every 1s" and "@always": the
//     commands that clients send to Redis and that scripts call, by MONITOR, and the processor time
//   - burst: of all jobs some are due at the same slot, round by round. From the
//     history of each run, to the millisecond: from the slot to the start of the run,
//     when its claim is granted and the command is about to be started, and from the
//     slot to its end, by when it has run. The truth about the command's start is
//     between the two.
package main
