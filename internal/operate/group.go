package operate

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// GroupOf returns a text that names the group that may use an admin socket, and says how to join the group. It returns only information
// that a user without access can read.
func GroupOf(socket string) string {
	info, err := os.Stat(socket)
	if err != nil { // this user may also not be allowed to open the directory
		info, err = os.Stat(filepath.Dir(socket))
	}
	if err != nil {
		return "its group"
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Gid == 0 {
		return "its group"
	}
	group, err := user.LookupGroupId(strconv.Itoa(int(owner.Gid)))
	if err != nil {
		return "its group"
	}
	return fmt.Sprintf("group %s (sudo usermod -aG %[1]s $USER, and sign in again)", group.Name)
}
