//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command killed with all that it has started. It is killed while it has
// not been waited for: its number cannot be another process' yet.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
