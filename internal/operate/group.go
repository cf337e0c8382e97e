package operate

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// GroupOf names the group that may use an admin socket, and how to join it, as far as a user without access can see that.
func GroupOf(socket string) string {
	info, err := os.Stat(socket)
	if err != nil { // its directory may be closed, too
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
