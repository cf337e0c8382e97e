// Package notify sends events to people and programs. It posts an event as JSON to a webhook, or runs a command with the JSON as input.
//
// # Model
//
//	Send ──── a queue for each target ──── one goroutine while there is something in it ──── Target
//
// [Dispatcher.Send] puts an [Event] into the queue of a target and returns, so the sender never waits for the target. The events of a
// target are delivered one after the other, in order.
//
// # Failures
//
//   - If a delivery fails, it is tried again after one second. The pause doubles after each attempt, up to a minute, and varies randomly by
//     a fifth. The attempts end after [Route].GiveUpAfter. Every event is tried at least once, regardless of how long it has waited for
//     earlier events.
//   - If the target says that it will never accept the event ([Refused]), the event is not tried again.
//   - If a target hangs, the attempt ends at its deadline.
//   - If a queue is full, the oldest event is dropped and counted.
//   - If the answer to a delivery is lost, the event is delivered twice, with the same id.
//   - If the process ends, [Dispatcher.Close] continues as long as its context allows. The remaining events are lost. If the process is
//     killed, all events in its queues are lost.
//
// Addresses and tokens are secrets. They are read again for every attempt, and never appear in an error or a log. Errors and logs contain
// only the name of a target.
package notify
