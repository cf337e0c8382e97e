//go:build !unix

package notify

import "os/exec"

// ownGroup does nothing here: there are no process groups.
func ownGroup(*exec.Cmd) {}
