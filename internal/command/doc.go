// Package command runs a command so that the command, together with all processes that it has started, is dead by a deadline. This
// holds however the command behaves, and even if the process that requested the command dies or hangs.
//
// # Model
//
//	baton ──── guard ──── warden ──── command ──── the command's processes
//	  └────── a socket ─────┘
//
// [Run] starts two more processes of the same program (package warden): the guard starts the warden, which starts the command. Orphans
// below each of these two processes become its children (PR_SET_CHILD_SUBREAPER), so each of the two finds every descendant of the
// command. This includes a descendant that has left its process group, its session or its parent. Guard and warden have their own
// names, command lines and process groups, so that killing baton by its name does not kill them.
//
// Both are ready before there is a command, if a command is expected ([Prepare], [Reserve]). Their start takes longer than the start of
// most commands, and a handover would wait for it. They get only the variables of the daemon's environment that control Go's runtime,
// and they end when the socket closes.
//
// Through the socket Run sends the warden the deadline of the command, repeatedly because the deadline moves, and the order to stop the
// command. The warden reports the end of the command. Run returns when the guard has ended.
//
// # What fails, and what then
//
//   - Run gets the order to stop the command: the stop signal, by default SIGTERM, is sent to the command's process group. SIGKILL is
//     sent to all descendants after the grace, or earlier if the deadline requires this.
//   - The command ends and leaves processes running: these processes also get SIGTERM, and SIGKILL after the grace, before Run returns
//     (unless [Spec].Leave is set).
//   - The process of Run is killed: the socket closes, and the warden stops the
//     command in the same way.
//   - The process of Run is stopped (SIGSTOP), or hangs: the deadline does not move, and the warden enforces it.
//   - The warden is killed, with or without Run's process: the command dies with the warden (PR_SET_PDEATHSIG). All descendants of the
//     command become children of the guard, which kills them.
//   - The guard is killed, with or without Run's process: the warden does not need the guard.
//   - Guard and warden are killed: the command dies, and Run kills its process group. Processes that have left the group continue, unless
//     the daemon is PID 1 (package orphans). If Run's process is also killed, the processes of the group also continue.
//   - The warden is also stopped: a timer of the kernel continues it (SIGCONT) in time to enforce the deadline.
//   - The command forks faster than it can be killed, like a fork bomb: all of its processes are stopped (SIGSTOP) before the first
//     process is killed, so that no process can fork when a killed process makes room below the limit of processes. If the command has
//     such a limit, the warden gets a real-time priority, because otherwise the command may take the processors from the warden.
//   - The command's time is over before the warden starts it, because the warden or baton was stopped: the command is not started.
//   - A killed process does not die while it waits in the kernel, for example for a disk that hangs: then Run does not return, and the
//     caller of Run must enforce its own deadline.
//
// A command with its own settings ([Spec].Settings) is started by one more process, the launcher, which applies the settings and then
// becomes the command. So warden and guard keep their priority, their memory and their rights. Starting a command with another user
// needs CAP_SETUID and CAP_SETGID, and ending it needs CAP_KILL. The commands themselves do not inherit these capabilities. Any other
// process that changes its user can be killed only by root.
package command
