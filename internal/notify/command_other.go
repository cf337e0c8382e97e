//go:build !unix

package notify

import "os/exec"

// ownGroup does nothing on systems without process groups.
func ownGroup(*exec.Cmd) {}
