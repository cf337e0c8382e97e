package daemon

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseStartUp gives back the pages of the program's data that only the start has needed:
// most of them, for a node that stands by for months. The kernel maps a page again from the
// page cache when it is needed. The code stays: a take-over would wait for it.
func releaseStartUp() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// 00400000-00f2c000 r-xp 00000000 fe:00 1234 /usr/bin/baton
		line := lines.Text()
		var from, to uintptr
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); err != nil {
			return fmt.Errorf("/proc/self/maps: %q: %w", line, err)
		}
		// Read-only and private: nothing in it can be lost.
		if !strings.HasSuffix(line, " "+program) || access != "r--p" {
			continue
		}
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("madvise: %w", failed)
		}
	}
	return lines.Err()
}
