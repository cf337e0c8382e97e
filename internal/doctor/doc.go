// Package doctor finds problems that lose data or keep a job from working: in the configuration, in Redis, in databases, among the nodes,
// in the unit and on the host. It changes nothing.
//
//	examination  the check of one server, and of the jobs that use it
//	Finding      the problem, its consequence and its remedy, with a severity
//	Examine      runs all examinations at the same time, and returns the findings in the order of the configuration
//	report       the findings as people and programs read them
//
// The command `baton doctor` runs all checks. A leader runs the same checks during its first term, over its own connections, and logs the
// grave findings.
//
// The invariants:
//
//   - A finding that reports a problem has a remedy. A check that could not be made also leads to a finding, and is never shown as a
//     success.
//   - No finding contains a secret, or a piece of one.
//
// What fails, and what then:
//
//   - A server does not answer within fifteen seconds: the finding says that it hangs, and the other examinations are not delayed.
//   - A check hangs in the kernel, for example on a network file system: doctor no longer waits for this check, because no code can end it.
//   - The user lacks the permission for a check: the finding names the permission.
package doctor
