//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the command into its own process group, so that a kill also ends the processes that the command has started. The kill
// happens before the wait for the command, so the process id cannot belong to another process yet.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
