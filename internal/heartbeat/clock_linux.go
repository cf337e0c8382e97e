package heartbeat

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2).
const clockBoottime = 7

// Boottime reads CLOCK_BOOTTIME. Go's own monotonic clock is CLOCK_MONOTONIC, which stops while the machine is suspended, but a lease
// does not stop.
func Boottime() Instant {
	var ts syscall.Timespec
	// clock_gettime fails only for an unknown clock, and CLOCK_BOOTTIME exists since Linux 2.6.39.
	//nolint:gosec // the call's own interface
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("heartbeat: this kernel has no CLOCK_BOOTTIME: " + errno.Error())
	}
	return Instant(time.Duration(ts.Nano()))
}
