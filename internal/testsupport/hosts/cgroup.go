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

// unifiedMount is where control groups of version 2 are: /sys/fs/cgroup, or a
// directory in it where version 1 is in use, too.
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

// removeGroup removes a group with those below it. The dead leave theirs a moment
// after they have been waited for.
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
			_ = syscall.Rmdir(d) // told by the last, if it matters
		}
		if _, err = os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return fmt.Errorf("control group %s cannot be removed; its processes: %q", dir, procs)
}
