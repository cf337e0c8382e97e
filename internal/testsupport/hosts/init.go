package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// hostSpec contains the data that a process needs to become a host.
type hostSpec struct {
	Name  string
	Base  string // the root file system, which is never written to
	Disk  string // the files that the host writes, kept over a power cut
	NetNS uintptr
}

// becomeHost turns this process, PID 1 of new namespaces, into the systemd of a host. It returns only if it fails.
func becomeHost() error {
	runtime.LockOSThread() // namespaces belong to a thread, and only the thread that calls exec remains
	var s hostSpec
	if err := json.Unmarshal([]byte(os.Getenv(envSpec)), &s); err != nil {
		return err
	}
	if err := unix.Setns(int(s.NetNS), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network: %w", err)
	}
	// The namespace is not made by clone, because its root is the control group in which the process is now.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a namespace of control groups: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return err
	}
	root, err := mountRoot(&s)
	if err != nil {
		return err
	}
	if err := enterRoot(root); err != nil {
		return err
	}
	argv := []string{"/lib/systemd/systemd", "--log-target=journal", "--show-status=no"}
	return unix.Exec(argv[0], argv, []string{"container=" + prefix + s.Name, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"})
}

// mountRoot mounts the host's root file system, which consists of the shared base and the host's own disk.
func mountRoot(s *hostSpec) (root string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", err
	}
	upper, work, root := filepath.Join(s.Disk, "upper"), filepath.Join(s.Disk, "work"), filepath.Join(s.Disk, "root")
	if err := os.RemoveAll(work); err != nil { // after a power cut the directory is in disorder
		return "", err
	}
	for _, dir := range []string{upper, work, root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.Base, upper, work)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return "", fmt.Errorf("mount the disk (%s): %w", options, err)
	}
	if err := identify(s, upper, root); err != nil {
		return "", err
	}
	const bare = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		fs, at, options string
		flags           uintptr
	}{
		{"proc", "proc", "", bare},
		{"sysfs", "sys", "", bare | unix.MS_RDONLY},
		{"cgroup2", "sys/fs/cgroup", "", bare},
		{"tmpfs", "dev", "mode=755", unix.MS_NOSUID},
		{"tmpfs", "run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.fs, filepath.Join(root, m.at), m.fs, m.flags, m.options); err != nil {
			return "", fmt.Errorf("mount /%s: %w", m.at, err)
		}
	}
	return root, errors.Join(guardKernel(root), makeDevices(filepath.Join(root, "dev")))
}

// identify gives a host its name and, at its first boot, its machine id.
func identify(s *hostSpec, upper, root string) error {
	if err := os.WriteFile(filepath.Join(root, "etc/hostname"), []byte(s.Name+"\n"), 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(upper, "etc/machine-id")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	var hex []byte
	for _, c := range id {
		if c != '-' {
			hex = append(hex, c)
		}
	}
	path := filepath.Join(root, "etc/machine-id")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, hex, 0o444)
}

// guardKernel prevents the root user of a host from changing the settings of the shared kernel.
func guardKernel(root string) error {
	for _, name := range []string{"proc/sys", "proc/sysrq-trigger"} {
		path := filepath.Join(root, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("make /%s read-only: %w", name, err)
		}
	}
	return nil
}

func makeDevices(dev string) error {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		if err := unix.Mknod(filepath.Join(dev, name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	if err := unix.Mknod(filepath.Join(dev, "tty"), unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))); err != nil {
		return err
	}
	for _, dir := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5"); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// enterRoot makes root the root directory, and makes the old root directory unreachable.
func enterRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	// At this point the old root is mounted over the new one.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Outside of containers, systemd itself makes mounts shared. In a container it does not, and the directories of LoadCredential= would
	// stay empty without shared mounts.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}
