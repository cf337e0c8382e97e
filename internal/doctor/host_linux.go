package doctor

import (
	"golang.org/x/sys/unix"
)

// kernelClock asks the kernel whether the clock is synchronised. It changes nothing.
func kernelClock() clockState {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return clockStateOf(state, int(t.Status), err)
}

func clockStateOf(state, status int, err error) clockState {
	const timeError = 5 // TIME_ERROR of adjtimex(2)
	if err != nil {
		return clockState{why: err}
	}
	return clockState{known: true, synchronized: state != timeError && status&unix.STA_UNSYNC == 0}
}

// openFiles returns how many files a process may open.
func openFiles() (uint64, bool) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Cur, err == nil
}

// freeSpace returns how many bytes a user other than root may still write in dir.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}

// mayWrite returns an error if this process may not write in dir. It asks the kernel, because the kernel also considers users, read-only
// mounts and sandboxes.
func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
