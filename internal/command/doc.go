// Package command runs a command so that it is dead by a deadline, it and all that it has started: however it behaves, and even if the
// process that asked for it dies or hangs.
//
// # Model
//
//	baton ──── guard ──── warden ──── command ──── the command's processes
//	  └────── a socket ─────┘
//
// [Run] starts two more processes of the same program (package warden): the guard starts the warden, which starts the command. Orphans
// below each of them become its children (PR_SET_CHILD_SUBREAPER), so it finds every descendant of the command, also one that has left
// its process group, its session or its parent. They have names, command lines and process groups of their own: killing baton by its name
// does not reach them.
//
// Both are ready before there is a command, where one is expected ([Prepare], [Reserve]): to start them takes longer than most commands
// take to begin, and a handover would wait for it. Of the daemon's environment they have only the variables that control Go's runtime,
// and they end when the socket closes.
//
// Over the socket Run gives the warden the deadline of the command, again and again as that moves, and the order to stop it; the warden
// reports its end. Run returns when the guard has.
//
// # What fails, and what then
//
//   - Run gets the order to stop the command: its stop signal, SIGTERM, to its process group, SIGKILL to all
//     descendants after the grace, or sooner if the deadline wants it.
//   - The command ends and leaves something running: that gets SIGTERM, grace and
//     SIGKILL, too, before Run returns (unless [Spec].Leave).
//   - The process of Run is killed: the socket closes, and the warden stops the
//     command in the same way.
//   - It is stopped (SIGSTOP), or hangs: the deadline does not move, and the warden
//     keeps it.
//   - The warden is killed, with or without Run's process: the command dies with it
//     (PR_SET_PDEATHSIG). All of its descendants become children of the guard, which kills them.
//   - The guard is killed, with or without Run's process: the warden does not need it.
//   - Guard and warden are killed: the command dies, and Run kills its process group. Processes
//     that have left the group go on. If Run's process is killed as well, so does the group.
//   - The warden is stopped, too: a timer of the kernel makes it go on (SIGCONT) in
//     time to keep the deadline.
//   - The command forks faster than it can be killed, as a fork bomb does: all of its processes are stopped (SIGSTOP) before
//     the first is killed, so that none forks into the room that another leaves.
//   - The command's time is over before the warden comes to start it, since one of them stood
//     still: it is not begun.
//   - Killed is not dead while the kernel does not let go of a process, as with a
//     disk that hangs: then Run does not return, and its caller must keep
//     its own deadline.
//
// A command with settings of its own ([Spec].Settings) is begun by one more process, the launcher: it applies them, and becomes the
// command. So warden and guard keep their priority, their memory and their rights. A command with another user takes CAP_SETUID and
// CAP_SETGID to be begun and CAP_KILL to be ended; the commands themselves do not inherit these. Any other process that changes its user
// can be killed by root only.
package command
