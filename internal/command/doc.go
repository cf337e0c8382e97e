// Package command runs a command so that it is dead by a deadline, it and all that
// it has started: however it behaves, and whatever happens to the process that
// asked for it.
//
// # Model
//
//	baton ──── a socket ──── warden ──── command ──── what the command starts
//
// [Run] starts a second process of the same program, the warden (package warden),
// which starts the command. The warden is what orphans below it are given to
// (PR_SET_CHILD_SUBREAPER), so it finds every descendant of the command, also one
// that has left its process group, its session or its parent.
//
// Over the socket Run tells the warden until when the command may live, again and
// again as that moves, and to stop it; the warden tells how it ended.
//
// # What fails, and what then
//
//   - Run is told to stop the command: SIGTERM to its process group, SIGKILL to all
//     descendants after the grace, or sooner if the deadline wants it.
//   - The command ends and leaves something running: that gets SIGTERM, grace and
//     SIGKILL, too, before Run returns (unless [Spec].Leave).
//   - The process of Run is killed: the socket closes, and the warden stops the
//     command in the same way.
//   - It is stopped (SIGSTOP), or hangs: nobody moves the deadline, and the warden
//     keeps it.
//   - The warden is killed: the command dies with it (PR_SET_PDEATHSIG), its
//     process group by Run.
//   - The warden is stopped, too: a timer of the kernel makes it go on (SIGCONT) in
//     time to keep the deadline.
//   - Killed is not dead while the kernel does not let go of a process, as with a
//     disk that hangs: then Run does not return, and whoever called it must see to
//     its own deadline.
//
// A process that has changed its user can be killed by root only.
package command
