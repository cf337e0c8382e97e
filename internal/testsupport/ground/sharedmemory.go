package ground

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeSharedMemory removes the System V segments of killed PostgreSQL servers in dir, because the number of segments on a machine is
// limited.
func removeSharedMemory(dir string) {
	for _, pattern := range []string{"data", "*/data"} {
		servers, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is a constant, so Glob returns no error
		for _, data := range servers {
			id, ok := SharedMemory(data)
			if !ok {
				continue
			}
			var stat unix.SysvShmDesc
			if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &stat); err == nil && stat.Nattch == 0 {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
		}
	}
}

// SharedMemory returns the id of the shared memory segment that a PostgreSQL has recorded in its lock file. PostgreSQL removes the lock
// file when it ends in order.
func SharedMemory(dataDir string) (id int, ok bool) {
	b, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 {
		return 0, false
	}
	key := strings.Fields(lines[6]) // the line contains key and id
	if len(key) != 2 {
		return 0, false
	}
	id, err = strconv.Atoi(key[1])
	return id, err == nil
}
