package daemon

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseStartUp frees the memory pages whose data only the start of the program has needed. In a node that is a standby for months, these
// are most of its pages. The kernel maps a page again from the page cache when the page is needed. The pages of the code stay in memory,
// because a takeover would wait for them.
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
		// The mapping is read-only and private, so no data in it can be lost.
		if !strings.HasSuffix(line, " "+program) || access != "r--p" {
			continue
		}
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("madvise: %w", failed)
		}
	}
	return lines.Err()
}
