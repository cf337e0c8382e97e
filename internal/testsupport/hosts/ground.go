package hosts

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enterGround prepares the namespaces of the second process, which runs the tests. It returns the data that the first process has passed.
func enterGround() (*base, error) {
	b := &base{}
	if err := json.Unmarshal([]byte(os.Getenv(envSpec)), b); err != nil {
		return nil, err
	}
	for _, name := range []string{envStage, envSpec} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	// From now on, mounts are invisible outside of the namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("mount /proc: %w", err)
	}
	// The disks of hosts and the tests' temporary files are in this memory, which vanishes with the last process.
	if err := unix.Mount("tmpfs", b.Dir, "tmpfs", 0, "mode=755"); err != nil {
		return nil, fmt.Errorf("mount memory on %s: %w", b.Dir, err)
	}
	return b, linkUp("lo")
}
