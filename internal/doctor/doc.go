// Package doctor finds problems that lose data or keep a job from working: in the configuration, in Redis, in databases, among the nodes,
// in the unit and on the host. It changes nothing.
//
//	examination  the check of one server, and of the jobs there
//	Finding      what is wrong, the consequence and the remedy, with a severity
//	Examine      runs all examinations at the same time, and returns the findings in the order of the configuration
//	report       the findings as people and programs read them
//
// `baton doctor` asks everything. A leader asks the same beside its first term, over connections of its own, and logs the grave findings.
//
// The invariants:
//
//   - A finding that reports a problem has a remedy. A check that could not be made is a finding, and never looks like a good answer.
//   - No finding contains a secret, or a piece of one.
//
// What fails, and what then:
//
//   - A server does not answer within fifteen seconds: the finding says that it hangs, and the other examinations are not held up.
//   - A check hangs in the kernel, as on a network file system: it is abandoned, since nothing can end it.
//   - The user may not ask for something: the finding names the permission.
package doctor
