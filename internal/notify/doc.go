// Package notify sends events to people and programs: it posts JSON to a webhook, or runs a command with it.
//
// # Model
//
//	Send ──── a queue for each target ──── one goroutine while there is something in it ──── Target
//
// [Dispatcher.Send] puts an [Event] into the queue of a target and returns: the sender never waits for the target. The events of a target
// are delivered one after the other, in order.
//
// # What fails, and what then
//
//   - A delivery fails: it is tried again after a second, then after twice that, up to
//     a minute, each time spread by a fifth, until [Route].GiveUpAfter is over. Every
//     event is tried at least once, however long it has waited for those before it.
//   - The target says that it will never take this event ([Refused]): it is not tried again.
//   - A target hangs: every attempt has a deadline.
//   - A queue is full: the oldest event goes, and is counted.
//   - The answer to a delivery is lost: the event is delivered twice, with the same id.
//   - The process ends: [Dispatcher.Close] goes on for as long as it is allowed to. Events
//     that are left then, and those in the queues of a killed process, are lost.
//
// Addresses and tokens are secrets. They are read again for every attempt, and are in no error and no log: a target is identified by its
// name.
package notify
