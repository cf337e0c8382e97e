//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the kill of a command include all that it has started. It is killed before anyone has waited for it: so its number
// cannot belong to another process yet.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
