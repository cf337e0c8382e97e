package sqlite

import "golang.org/x/sys/unix"

// fileSystem returns the magic number of the file system that contains a directory.
func fileSystem(dir string) (magic int64, ok bool) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return int64(s.Type), err == nil //nolint:unconvert // other architectures have other types
}

// writable asks the kernel whether this process may write to dir. The kernel considers users, read-only mounts and sandboxes.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
