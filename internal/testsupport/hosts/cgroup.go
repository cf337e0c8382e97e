package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// unifiedMount returns the directory of control groups of version 2: /sys/fs/cgroup, or a directory in it if the system also uses version
// 1.
func unifiedMount() (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		head, tail, _ := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if len(fields) > 4 && strings.HasPrefix(tail, "cgroup2 ") && fields[3] == "/" {
			return fields[4], nil
		}
	}
	return "", errors.New("no control group hierarchy of version 2 is mounted here; systemd in a host needs one")
}

// removeGroup removes a control group and the groups below it. It tries for a while, because a dead process leaves its group only a moment
// after the wait for the process has returned.
func removeGroup(dir string) error {
	var err error
	for range 200 {
		var dirs []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, d := range slices.Backward(dirs) {
			_ = syscall.Rmdir(d) // only the error of the last group counts
		}
		if _, err = os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return fmt.Errorf("control group %s cannot be removed; its processes: %q", dir, procs)
}
